package view

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/session"
)

// DefaultAddr is where the live viewer listens if nothing else is asked for.
const DefaultAddr = "127.0.0.1:8765"

// AddrError says that an address is none that the viewer may listen on. Nothing was opened.
type AddrError struct{ Addr, Reason string }

func (e *AddrError) Error() string {
	return fmt.Sprintf("cannot serve on %q: %s", e.Addr, e.Reason)
}

// ServeOptions are what the live viewer needs from outside.
type ServeOptions struct {
	Addr    string // host:port on loopback; port 0 picks a free one; empty: DefaultAddr
	Token   string // of the URL; empty: a random one
	Session string // full id of the session whose page is named first, or empty
	Out     io.Writer
	// Diff gives the patch of a commit; without it there are none.
	Diff func(ctx context.Context, s *session.Session, sha string) (patch string, truncated bool)
	// Remote, if not nil, gives the rows of the list instead of the store: sessions that are elsewhere.
	Remote func(ctx context.Context) ([]RemoteRow, error)
	// Open, if not nil, is called once when the server listens.
	Open func(url string)
}

// RemoteRow is a session of a remote in the list of all sessions.
type RemoteRow struct {
	ID        string             `json:"session_id"`
	Label     string             `json:"label"`
	State     string             `json:"state"`
	Held      string             `json:"held"` // by whom, in words
	Tasks     session.TaskCounts `json:"tasks"`
	Tokens    int64              `json:"tokens_used"`
	Cost      float64            `json:"cost"`
	LastStop  string             `json:"last_stop"`
	Pushed    string             `json:"last_event_at"`
	Elsewhere bool               `json:"elsewhere"` // there is no page of it here
}

// Serve shows the sessions of a store in a browser, live, until ctx ends. It listens on loopback only, answers GET and
// HEAD under a secret path and for its own host names only, and writes nothing anywhere.
//
// A page of another site can make a browser send requests to loopback, and by DNS rebinding even read the answers:
// hence the check of the Host header, and a token that such a page cannot know.
func Serve(ctx context.Context, store session.Store, o ServeOptions) error {
	if o.Addr == "" {
		o.Addr = DefaultAddr
	}
	if err := CheckAddr(o.Addr); err != nil {
		return err
	}
	if o.Token == "" {
		o.Token = rand.Text()
	}
	ln, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return &AddrError{o.Addr, err.Error()}
	}
	defer ln.Close()
	// What was resolved is checked again: a name may mean anything.
	bound, err := netip.ParseAddrPort(ln.Addr().String())
	if err != nil || !bound.Addr().Unmap().IsLoopback() {
		return &AddrError{o.Addr, "it is no loopback address"}
	}
	v := &viewer{store: store, o: o, hosts: hostNames(o.Addr, bound)}
	url := "http://" + bound.String() + "/" + o.Token + "/"
	if o.Session != "" {
		url += "s/" + o.Session + "/"
	}
	if o.Out != nil {
		fmt.Fprintf(o.Out, "%s\n", url)
	}
	if o.Open != nil {
		o.Open(url)
	}
	return v.run(ctx, ln)
}

// CheckAddr refuses, with an *AddrError, an address that is not loopback.
func CheckAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return &AddrError{addr, "want host:port, like " + DefaultAddr}
	}
	if host == "localhost" {
		return checkPort(addr, port)
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.Unmap().IsLoopback() {
		return &AddrError{addr, "only loopback addresses are served, like " + DefaultAddr}
	}
	return checkPort(addr, port)
}

func checkPort(addr, port string) error {
	if _, err := net.LookupPort("tcp", port); err != nil {
		return &AddrError{addr, "its port is no number from 0 to 65535"}
	}
	return nil
}

// hostNames are the Host headers that mean this server.
func hostNames(asked string, bound netip.AddrPort) map[string]bool {
	port := fmt.Sprint(bound.Port())
	names := map[string]bool{bound.String(): true, "localhost:" + port: true}
	if host, _, err := net.SplitHostPort(asked); err == nil {
		names[net.JoinHostPort(host, port)] = true
	}
	return names
}

type viewer struct {
	store session.Store
	o     ServeOptions
	hosts map[string]bool
}

func (v *viewer) run(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{
		Handler:           v,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx }, // ends the event streams
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ln) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if srv.Shutdown(grace) != nil {
		srv.Close()
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ServeHTTP lets in what may come in, and finds the page.
func (v *viewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	if !v.hosts[r.Host] {
		http.Error(w, "this server does not answer to that name", http.StatusMisdirectedRequest)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "read only", http.StatusMethodNotAllowed)
		return
	}
	token, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if subtle.ConstantTimeCompare([]byte(token), []byte(v.o.Token)) != 1 {
		http.NotFound(w, r)
		return
	}
	v.route(w, r, rest)
}

func (v *viewer) route(w http.ResponseWriter, r *http.Request, path string) {
	switch path {
	case "":
		v.page(w, indexPage(), nil)
		return
	case "sessions.json":
		v.sessions(r.Context(), w)
		return
	}
	elems := strings.Split(path, "/")
	if len(elems) < 3 || elems[0] != "s" || !session.ValidID(elems[1]) {
		http.NotFound(w, r)
		return
	}
	s, err := v.store.Find(elems[1])
	if err != nil {
		http.NotFound(w, r)
		return
	}
	switch {
	case len(elems) == 3 && elems[2] == "":
		v.sessionPage(w, s)
	case len(elems) == 3 && elems[2] == "events":
		v.events(w, r, s)
	case len(elems) == 4 && elems[2] == "diff" && isObjectID(elems[3]):
		v.diff(w, r, s, elems[3])
	default:
		http.NotFound(w, r)
	}
}

func (v *viewer) page(w http.ResponseWriter, d document, data []byte) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", d.policy+"; frame-ancestors 'none'")
	io.WriteString(w, d.before)
	w.Write(data)
	io.WriteString(w, d.after)
}

func (v *viewer) sessionPage(w http.ResponseWriter, s *session.Session) {
	h := readHead(s, time.Now())
	h.Live = true
	data, err := h.json()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	v.page(w, livePage(), append(append([]byte(`<script type="application/json" id="head">`), data...),
		"</script>\n"...))
}

// sessions is what the index shows: the rows of `list --all --json`, or the remote's.
func (v *viewer) sessions(ctx context.Context, w http.ResponseWriter) {
	if v.o.Remote != nil {
		v.remote(ctx, w)
		return
	}
	ids, err := v.store.IDs()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := writeJSON(w, rowsOf(v.store.Overview(ids, nil))); err != nil {
		return // the reader has gone
	}
}

func (v *viewer) remote(ctx context.Context, w http.ResponseWriter) {
	rows, err := v.o.Remote(ctx)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	for i, row := range rows {
		_, err := v.store.Find(row.ID)
		rows[i].Elsewhere = err != nil
	}
	w.Header().Set("Content-Type", "application/json")
	_ = writeJSON(w, append([]RemoteRow{}, rows...)) // else the reader has gone
}

func (v *viewer) diff(w http.ResponseWriter, r *http.Request, s *session.Session, sha string) {
	if v.o.Diff == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(patchJSON(v.o.Diff(r.Context(), s, sha)))
}
