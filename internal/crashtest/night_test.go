//go:build linux && (amd64 || arm64)

package crashtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// commitMsg is a hook of the repository. It refuses T-002 while a file in the home directory exists. Its processes are
// killed too, so only a grep that found nothing lets a message pass.
const commitMsg = `#!/bin/sh
test -e "$HOME/refuse" || exit 0
grep -q '^Beta' "$1"
test $? -ne 1 || exit 0
echo 'no Beta here' >&2
exit 1
`

// atNight creates the worlds in which a hook refuses the remaining task, no validator can start, and the endpoint
// answers the first question about T-002 with a usage limit or with nothing, which fails the task.
func (f *fixtures) atNight() (err error) {
	if f.refusing, err = f.copy(f.aside); err != nil {
		return err
	}
	if f.unable, err = f.copy(f.prepared); err != nil {
		return err
	}
	settings, err := os.OpenFile(f.unable.settings(), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = settings.WriteString("[tilth]\n\tvalidator = lint=nosuchrunner\n")
		err = errors.Join(err, settings.Close())
	}
	if err != nil {
		return err
	}
	if f.limited, err = f.copy(f.aside); err != nil {
		return err
	}
	f.limited.first = http.StatusTooManyRequests
	if f.faulty, err = f.copy(f.aside); err != nil {
		return err
	}
	f.faulty.first = http.StatusOK
	return os.WriteFile(f.refusing.refuse(), nil, 0o644)
}

func refusing(f *fixtures) *world { return f.refusing }
func unable(f *fixtures) *world   { return f.unable }
func limited(f *fixtures) *world  { return f.limited }
func faulty(f *fixtures) *world   { return f.faulty }

func (w *world) refuse() string   { return filepath.Join(w.dir, "home", "refuse") }
func (w *world) settings() string { return filepath.Join(w.dir, "home", ".gitconfig") }

// moody is a proxy of an endpoint. Under /<status>/<name>/ it answers the first request about T-002 under that name
// with the status, and forwards all others.
func moody(next http.Handler) *httptest.Server {
	var asked sync.Map
	return httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client left
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		status, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if status != "v1" && bytes.Contains(body, []byte("# Your task: T-002")) {
			if _, before := asked.LoadOrStore(r.URL.Path, true); !before {
				rw.Header().Set("Content-Type", "application/json")
				answer := `{"choices": [{"message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}]}`
				code := http.StatusOK
				if status == fmt.Sprint(http.StatusTooManyRequests) {
					code = http.StatusTooManyRequests
					answer = `{"error": {"type": "usage_limit_reached", "message": "used up", "resets_in_seconds": 1}}`
				}
				rw.WriteHeader(code)
				_, _ = io.WriteString(rw, answer)
				return
			}
		}
		next.ServeHTTP(rw, r)
	}))
}

// let continues after a commit hook refused an accepted change. While it refuses, no model is asked again; then the
// accepted change is committed.
func let(f *fixtures, w *world, turn int) error {
	if turn%2 == 1 {
		if _, err := w.expect([]int{1}, "resume"); err != nil {
			return err
		}
		if status, err := w.status(); err != nil || status["T-002"] != "pending" {
			return fmt.Errorf("the status of what is refused is %q: %w", status["T-002"], err)
		}
	}
	if err := os.Remove(w.refuse()); err != nil {
		return err
	}
	if err := resumed(f, w, turn); err != nil {
		return err
	}
	accepted := 0
	for _, e := range w.events() {
		p := e.Get("payload")
		if e.Get("type").Str == "evaluator_verdict" && p.Get("task_id").Str == "T-002" &&
			p.Get("verdict").Str == "accept" && p.Get("by").Str == "" {
			accepted++
		}
	}
	if accepted != 1 {
		return fmt.Errorf("the evaluator accepted T-002 %d times", accepted)
	}
	return nil
}

// letOn is let after a run that went on: the task has failed, and a resume tries it again.
func letOn(f *fixtures, w *world, turn int) error {
	return errors.Join(os.Remove(w.refuse()), resumed(f, w, turn))
}

// mended continues after a killed preflight: no model was asked, and with a working validator all tasks get done.
func mended(f *fixtures, w *world, turn int) error {
	for _, e := range w.events() {
		if kind := e.Get("type").Str; kind == "model_call" || kind == "context_reset" {
			return fmt.Errorf("there is a %s", kind)
		}
	}
	if turn%2 == 1 {
		if _, err := w.expect([]int{2}, "resume"); err != nil {
			return err
		}
	}
	able, err := os.ReadFile(f.prepared.settings())
	if err == nil {
		err = os.WriteFile(w.settings(), able, 0o644)
	}
	return errors.Join(err, resumed(f, w, turn))
}

// waited continues after a run that waited for a usage limit: it waits again, or the limit ends first.
func waited(f *fixtures, w *world, turn int) error {
	if turn%2 == 1 {
		if _, err := w.expect([]int{0, 5}, "resume"); err != nil {
			return err
		}
		return resumed(f, w, turn)
	}
	if _, err := w.expect([]int{0}, "resume", "--wait"); err != nil {
		return err
	}
	return w.allDone()
}

// again continues after a run with --auto-resume.
func again(_ *fixtures, w *world, _ int) error {
	if _, err := w.expect([]int{0}, "resume", "--auto-resume", "1"); err != nil {
		return err
	}
	return w.allDone()
}
