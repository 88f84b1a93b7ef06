package view

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/view/viewtest"
)

func TestListen(t *testing.T) {
	for addr, ok := range map[string]bool{
		"127.0.0.1:0": true, "[::1]:0": true, "localhost:0": true, "127.9.9.9:0": true, "[::ffff:127.0.0.1]:0": true,
		"0.0.0.0:0": false, "0.0.0.0:8765": false, ":8765": false, "[::]:8765": false, "192.168.1.2:8765": false,
		"example.com:80": false, "127.0.0.1": false,
		"127.0.0.1:99999": false, "localhost.example.com:80": false, "2130706433:80": false, "": false,
		"127.0.0.1:http:": false,
	} {
		ln, err := Listen(addr)
		if ln != nil {
			ln.Close()
		}
		if err != nil && strings.HasPrefix(addr, "[::1]") && !strings.Contains(err.Error(), "loopback") {
			continue // there is no IPv6 here
		}
		if ok != (err == nil) {
			t.Errorf("%q: %v", addr, err)
		}
	}
	taken, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if _, err := Listen(taken.Addr().String()); err == nil {
		t.Error("a port that is taken is listened on")
	}
}

// served starts the viewer and returns its URL, token included.
func served(t *testing.T, store session.Store) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	url, done := make(chan string, 1), make(chan error, 1)
	ln, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		done <- Serve(ctx, ln, store, ServeOptions{Ready: func(u string) { url <- u },
			Rows: func() ([]session.Overview, error) {
				ids, err := store.IDs()
				return store.Overview(ids, nil), err
			},
			Review: func(s *session.Session) *Report { return NewReport(s.Overview(), s) }})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case u := <-url:
		return u
	case err := <-done:
		t.Fatal(err)
		return ""
	}
}

func request(t *testing.T, method, url, host string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		req.Host = host
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// The page of a session leads to the list of all of them.
func TestLivePageLinksToTheList(t *testing.T) {
	s := story(t)
	at, err := url.Parse(served(t, session.Store{Root: strings.TrimSuffix(s.Dir, "/"+s.ID)}) + "s/" + s.ID + "/")
	if err != nil {
		t.Fatal(err)
	}
	_, page := request(t, http.MethodGet, at.String(), "")
	// It begins with the review, in the page itself, as the static one does.
	if at := strings.Index(page, `id="morning"`); at < 0 || at > strings.Index(page, "<main>") {
		t.Error("the page does not begin with the review")
	}
	// The head of the page does not wait for the record.
	if head := regexp.MustCompile(`id="head">({.*})</script>`).FindStringSubmatch(page); head == nil ||
		gjson.Get(head[1], "session.id").Str != s.ID || !gjson.Get(head[1], "live").Bool() {
		t.Errorf("the page begins with %s", head)
	}
	link := regexp.MustCompile(`all.href = "([^"]*)";`).FindStringSubmatch(page)
	if link == nil {
		t.Fatal("the page has no link to the list")
	}
	list, err := at.Parse(link[1])
	if err != nil {
		t.Fatal(err)
	}
	if resp, body := request(t, http.MethodGet, list.String(), ""); resp.StatusCode != http.StatusOK ||
		!strings.Contains(body, "<h1>Sessions</h1>") {
		t.Errorf("%s leads to %s", link[1], resp.Status)
	}
}

func TestServerLetsNobodyElseIn(t *testing.T) {
	s := story(t)
	url := served(t, session.Store{Root: strings.TrimSuffix(s.Dir, "/"+s.ID)})
	base, token, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	port := base[strings.LastIndex(base, ":"):]
	page := url + "s/" + s.ID + "/"
	for _, c := range []struct {
		name, method, url, host string
		want                    int
	}{
		{"the index", "GET", url, "", 200},
		{"the page", "GET", page, "", 200},
		{"its head", "HEAD", page, "", 200},
		{"by name", "GET", page, "localhost" + port, 200},
		{"another name", "GET", page, "attacker.example" + port, 421},
		{"another name without a port", "GET", page, "attacker.example", 421},
		{"a name that begins like ours", "GET", page, "localhost.attacker.example" + port, 421},
		{"our name with another port", "GET", page, "localhost:1", 421},
		{"writing", "POST", page, "", 405},
		{"deleting", "DELETE", page, "", 405},
		{"asking for options", "OPTIONS", page, "", 405},
		{"no token", "GET", "http://" + base + "/", "", 404},
		{"no token, a session", "GET", "http://" + base + "/s/" + s.ID + "/", "", 404},
		{"another token", "GET", strings.Replace(page, token[:4], "AAAA", 1), "", 404},
		{"a part of the token", "GET", "http://" + base + "/" + token[:8] + "/", "", 404},
		{"another session", "GET", url + "s/20200101-000000-000000/", "", 404},
		{"a part of an id", "GET", url + "s/" + s.ID[:8] + "/", "", 404},
		{"a file", "GET", url + "s/" + s.ID + "/checkpoint.json", "", 404},
		{"a way out", "GET", url + "s/..%2f..%2fetc/", "", 404},
		{"a diff of no commit", "GET", page + "diff/HEAD", "", 404},
	} {
		resp, body := request(t, c.method, c.url, c.host)
		if resp.StatusCode != c.want {
			t.Errorf("%s: %s", c.name, resp.Status)
		}
		if c.want != 200 && (strings.Contains(body, s.ID) || strings.Contains(body, strings.Trim(token, "/"))) {
			t.Errorf("%s: the refusal tells something: %s", c.name, body)
		}
	}
	resp, _ := request(t, "GET", page, "")
	for name, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin"} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if csp := resp.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") ||
		!strings.Contains(csp, "frame-ancestors 'none'") {
		t.Errorf("the policy is %q", csp)
	}
	if resp, _ := request(t, "GET", page, ""); resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("other sites may read")
	}
}

func TestServerListsSessions(t *testing.T) {
	s := story(t)
	url := served(t, session.Store{Root: strings.TrimSuffix(s.Dir, "/"+s.ID)}) + "sessions.json"
	_, body := request(t, "GET", url, "")
	for _, want := range []string{s.ID, `"failed"`, "Graft schedule"} {
		if !strings.Contains(body, want) {
			t.Errorf("the list lacks %s: %s", want, body)
		}
	}
	// The session has newer events, but no process runs it.
	more := `{"ts":"2026-06-12T06:20:00Z","type":"context_reset","payload":{"task_id":"T-003"}}` + "\n"
	f, err := os.OpenFile(s.Path(session.RecordFile), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(more)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if _, body = request(t, "GET", url, ""); !strings.Contains(body, `"state": "crashed"`) {
		t.Errorf("the list has no crashed session: %s", body)
	}
}

// A browser that reconnects after a break must reload.
func TestStreamStartsAgain(t *testing.T) {
	s := story(t)
	url := served(t, session.Store{Root: strings.TrimSuffix(s.Dir, "/"+s.ID)}) + "s/" + s.ID + "/events"
	for last, want := range map[string]string{"": "event: block", "1234": "event: reset"} {
		ctx, cancel := context.WithCancel(context.Background())
		req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if last != "" {
			req.Header.Set("Last-Event-ID", last)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(resp.Body).ReadString('\n')
		if err != nil || strings.TrimSpace(line) != want {
			t.Errorf("after %q: %q, %v", last, line, err)
		}
		cancel()
		resp.Body.Close()
	}
}

// The page of a running session shows the worker's activity.
func TestStreamSaysWhatTheWorkerDoes(t *testing.T) {
	w := viewtest.New(t, session.Store{Root: t.TempDir()})
	w.Event(0, "tool_call", viewtest.Task("T-002", 1, viewtest.P{"tool": "Read", "args": viewtest.P{}}))
	w.Event(0, "tool_call", viewtest.Task("T-001", 1,
		viewtest.P{"tool": "Edit", "args": viewtest.P{"file_path": "/w/src/calc.py"}}))
	w.Flush()
	s := w.S
	unlock, err := s.Lock(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	url := served(t, session.Store{Root: strings.TrimSuffix(s.Dir, "/"+s.ID)}) + "s/" + s.ID + "/events"
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if data, is := strings.CutPrefix(line, "data: {"); is && gjson.Get("{"+data, "running").Exists() {
			doing := gjson.Get("{"+data, "doing")
			if doing.Get("#.task").Raw != `["T-001","T-002"]` || doing.Get("0.what").Str != "Edit src/calc.py" ||
				doing.Get("0.since").Int() == 0 {
				t.Errorf("the head is %s", data)
			}
			return
		}
	}
}
