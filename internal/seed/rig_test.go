package seed

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/scripttest/clock"
	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/view"
)

func init() { clock.Advance(new(atomic.Int64), func() {}) } // no test sleeps

// rig is an interview against the scripted endpoint over HTTP, with a real
// session directory, record, transcript and tool box.
type rig struct {
	t        testing.TB
	server   *scripted.Server
	source   string
	wt, sess string
	out      bytes.Buffer
	spent    session.RoleUsage
	events   []event
	deps     Deps
}

type event struct {
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload"`
}

func step(tools ...scripted.Tool) scripted.Step { return scripted.Step{Tools: tools} }

func call(t testing.TB, name string, args any) scripted.Tool {
	t.Helper()
	if text, ok := args.(string); ok { // raw text of arguments, valid or not
		raw, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		return scripted.Tool{Name: name, Args: raw}
	}
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return scripted.Tool{Name: name, Args: raw}
}

func ask(t testing.TB, question string, options ...string) scripted.Tool {
	args := map[string]any{"question": question}
	if len(options) > 0 {
		args["options"] = options
	}
	return call(t, askTool, args)
}

func writeSeed(t testing.TB, n int, change func(map[string]any)) scripted.Tool {
	return call(t, writeTool, json.RawMessage(arguments(t, n, change)))
}

// newRig starts a script; answers are the content of the pipe.
func newRig(t testing.TB, answers string, steps ...scripted.Step) *rig {
	t.Helper()
	server, err := scripted.Start(&scripted.Script{Interview: steps, VerifyEcho: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	r := &rig{t: t, server: server, source: sourceTree(t)}
	r.wt, r.sess = sessionDirs(t)
	r.deps = interviewDeps(t, server.URL, r.source, r.wt, r.sess)
	emit, spent := r.deps.Emit, r.deps.Spent
	r.deps.Emit = func(ev record.Event) error {
		r.events = append(r.events, event{record.TypeOf(ev), record.JSON(ev)})
		return emit(ev)
	}
	r.deps.Spent = func(u session.RoleUsage) error { r.spent = u; return spent(u) }
	r.deps.Terminal = NewTerminal(text.NewLines(strings.NewReader(answers)), &r.out, view.Terminal{}, false)
	return r
}

func sourceTree(t testing.TB) string {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "calc.py"), "def add(a, b):\n    return a + b\n")
	write(t, filepath.Join(dir, "docs", "spec.md"), "# Subtraction\n\nsub(3, 2) is 1.\n")
	return dir
}

// interviewDeps is a real interview but for its terminal.
func interviewDeps(t testing.TB, url, source, wt, sess string) Deps {
	t.Helper()
	s := &session.Session{ID: "20260101-000000-abcdef", Dir: sess}
	rec, err := s.OpenRecord(record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	add, shut, err := s.OpenTranscript(record.RoleInterview, record.Scope{}, time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	box, err := agent.OpenTools(source, agent.ToolOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close(); shut(); box.Close() })
	client, err := model.New(model.Endpoint{BaseURL: url, Model: "scripted"}, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return Deps{
		Brief: "add subtraction", Source: source,
		Calls: agent.Calls{
			Chat: client.Chat,
		}, ModelName: "scripted",
		Tools: box, Now: time.Now, Prompts: prompts(t, ""), Propose: propose(wt, sess),
		Transcript: add, Emit: rec.Append, Spent: func(session.RoleUsage) error { return nil },
	}
}

func prompts(t testing.TB, dir string) *text.Prompts {
	t.Helper()
	set, err := LoadPrompts(dir)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// propose judges and stages like the command does.
func propose(wt, sess string) func(context.Context, *Bundle) ([]Violation, error) {
	return func(_ context.Context, b *Bundle) ([]Violation, error) {
		if vs := Check(b, Rules{TestsRequired: true, Root: wt}); len(vs) > 0 {
			return vs, nil
		}
		_, err := Install(b, wt, sessionAt(sess))
		return nil, err
	}
}

func (r *rig) run() (*Bundle, error) { return Interview(context.Background(), r.deps) }

// types lists the events, with the tool or kind that they are about.
func (r *rig) types() string {
	var out []string
	for _, e := range r.events {
		var p struct{ Tool, Kind, Health, Phase string }
		if err := json.Unmarshal(e.Payload, &p); err != nil {
			r.t.Error(err)
		}
		if p.Phase != "interview" {
			r.t.Errorf("%s without its phase", e.Type)
		}
		if p.Health == "ok" {
			p.Health = ""
		}
		out = append(out, strings.TrimSpace(e.Type+" "+p.Tool+p.Kind+p.Health))
	}
	return strings.Join(out, "\n")
}

// noBundle checks that no part of a seed exists.
func noBundle(t testing.TB, sess string) {
	t.Helper()
	for _, p := range tree(t, sess) {
		if strings.Contains(p, "t00") || p == "prd.json" || p == "seed-meta.json" {
			t.Errorf("%s is left", p)
		}
	}
}

func transcriptRoles(t testing.TB, sess string) (roles []string, text string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(sess, session.InterviewFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		var m struct{ Role string }
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		roles = append(roles, m.Role)
	}
	return roles, string(raw)
}
