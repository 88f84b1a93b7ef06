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

// DefaultAddr is the default address of the live viewer.
const DefaultAddr = "127.0.0.1:8765"

// ServeOptions configure the live viewer.
type ServeOptions struct {
	Session string   // full id of the session to open first, or empty
	Diff    DiffFunc // shows the diffs of commits in a page
	// Review, if not nil, returns the review at the top of an idle session's page. It is called concurrently.
	Review func(*session.Session) *Report
	// Rows returns the sessions of the list. It is called concurrently.
	Rows func() ([]session.Overview, error)
	// Ready is called once, with the URL.
	Ready func(url string)
}

// Listen opens an address for Serve: host:port on loopback, where port 0 picks a free one. It refuses any other.
func Listen(addr string) (net.Listener, error) {
	refused := func(why string) error { return fmt.Errorf("cannot serve on %q: %s", addr, why) }
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, refused("want host:port, like " + DefaultAddr)
	}
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.Unmap().IsLoopback()) {
		return nil, refused("only loopback addresses are served, like " + DefaultAddr)
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, refused(err.Error())
	}
	// The resolved address is checked again, because a name can resolve to any address.
	if !ln.Addr().(*net.TCPAddr).AddrPort().Addr().Unmap().IsLoopback() {
		ln.Close()
		return nil, refused("not a loopback address")
	}
	return ln, nil
}

// Serve shows the sessions of a store in a browser, live, until ctx ends. It answers GET and HEAD under a secret path
// and for its own host names only, and writes nothing anywhere.
//
// A page of another site can make a browser send requests to loopback, and by DNS rebinding even read the answers:
// hence the check of the Host header, and a token that such a page cannot know.
func Serve(ctx context.Context, ln net.Listener, store session.Store, o ServeOptions) error {
	host := ln.Addr().String()
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		return err
	}
	v := &viewer{store: store, o: o, token: rand.Text(),
		hosts: map[string]bool{host: true, net.JoinHostPort("localhost", port): true}}
	url := "http://" + host + "/" + v.token + "/"
	if o.Session != "" {
		url += "s/" + o.Session + "/"
	}
	o.Ready(url)
	srv := &http.Server{
		Handler:           v,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx }, // ends the event streams
	}
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

type viewer struct {
	store session.Store
	o     ServeOptions
	token string
	hosts map[string]bool // the Host headers that mean this server
}

// ServeHTTP checks the request's host and token, and serves the page.
func (v *viewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	if !v.hosts[r.Host] {
		http.Error(w, "unknown host name", http.StatusMisdirectedRequest)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "read only", http.StatusMethodNotAllowed)
		return
	}
	token, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if subtle.ConstantTimeCompare([]byte(token), []byte(v.token)) != 1 {
		http.NotFound(w, r)
		return
	}
	v.route(w, r, rest)
}

func (v *viewer) route(w http.ResponseWriter, r *http.Request, path string) {
	switch path {
	case "":
		v.page(w, indexPage(), "", nil, nil)
		return
	case "sessions.json":
		v.sessions(w)
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
		v.page(w, livePage(), liveHead(s), v.review(s), v.o.Diff.of(r.Context(), s))
	case len(elems) == 3 && elems[2] == "events":
		v.events(w, r, s)
	default:
		http.NotFound(w, r)
	}
}

// review returns the review for a session's page; nil while the session runs, because it would be out of date at once.
func (v *viewer) review(s *session.Session) *Report {
	if _, busy := s.Holder(); busy || v.o.Review == nil {
		return nil
	}
	return v.o.Review(s)
}

func (v *viewer) page(w http.ResponseWriter, d document, data string, r *Report, patch func(string) (string, bool)) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", d.policy+"; frame-ancestors 'none'")
	io.WriteString(w, d.beginning(r, patch)+data+d.after)
}

// liveHead returns the first head of the page. The stream's head follows the record's last event, which takes a while
// for a long record, and is missing for an unreadable one.
func liveHead(s *session.Session) string {
	h := readHead(s, time.Now())
	h.Live = true
	return `<script type="application/json" id="head">` + string(inPage(h)) + "</script>\n"
}

// sessions serves the list of sessions.
func (v *viewer) sessions(w http.ResponseWriter) {
	all, err := v.o.Rows()
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = writeJSON(w, pageRows(all)) // on an error the reader has left
}
