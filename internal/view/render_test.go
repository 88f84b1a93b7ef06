package view

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/view/viewtest"
)

func story(t testing.TB) *session.Session {
	t.Helper()
	w := viewtest.New(t, session.Store{Root: t.TempDir()})
	viewtest.Story(w)
	return w.S
}

func render(t testing.TB, s *session.Session) string {
	t.Helper()
	if err := RenderFile(context.Background(), s, viewtest.Start, nil, nil); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(s.Path(session.ChatHTMLFile))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Every part of a page is in the binary, and its policy names exactly its own script
// and style.
func TestPagesAreWhole(t *testing.T) {
	for name, d := range map[string]document{"static": staticPage(), "live": livePage(), "index": indexPage()} {
		html := d.beginning(nil, nil) + d.after
		if strings.Contains(html, "{{") || !strings.HasPrefix(html, "<!doctype html>") {
			t.Errorf("%s: a part of the page is missing", name)
		}
		for _, want := range []string{"default-src 'none'", "script-src 'sha256-", "style-src 'sha256-",
			"base-uri 'none'", "form-action 'none'"} {
			if !strings.Contains(d.policy, want) {
				t.Errorf("%s: the policy lacks %s", name, want)
			}
		}
		if strings.Contains(d.policy, "unsafe") || (name == "static") == strings.Contains(d.policy, "connect-src") {
			t.Errorf("%s: the policy is %s", name, d.policy)
		}
		script := regexp.MustCompile(`(?s)<script>(.*)</script>`).FindStringSubmatch(html)
		style := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(html)
		if script == nil || style == nil || !strings.Contains(d.policy, sourceHash(script[1])) ||
			!strings.Contains(d.policy, sourceHash(style[1])) {
			t.Errorf("%s: the policy does not name the page's own script and style", name)
		}
	}
	entries, err := fs.ReadDir(pageFiles, "page")
	if err != nil {
		t.Fatal(err)
	}
	used := append(slices.Clone(pageScripts), "page.html", "page.css", "index.html", "index.js")
	for _, e := range entries {
		if !slices.Contains(used, e.Name()) {
			t.Errorf("%s is in no page", e.Name())
		}
	}
}

// The script never makes markup of data, and no part of it runs text as code.
func TestScriptUsesTextOnly(t *testing.T) {
	for _, name := range append(slices.Clone(pageScripts), "index.js") {
		for _, no := range []string{"innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(",
			"new Function", "setAttribute(\"on", "srcdoc", "DOMParser"} {
			if strings.Contains(readPage(name), no) {
				t.Errorf("%s uses %s", name, no)
			}
		}
	}
}

func TestRenderFile(t *testing.T) {
	s := story(t)
	html := render(t, s)
	info, err := os.Stat(s.Path(session.ChatHTMLFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: a page holds prompts and diffs", info.Mode(), err)
	}
	for _, want := range []string{`id="head"`, `class="index"`, `class="events"`, "Graft schedule"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	page := staticPage()
	if load := regexp.MustCompile(`(src|href|action)="?https?:|url\(|@import|import\(|fetch\("http`).FindString(page.before + page.after); load != "" {
		t.Errorf("the page loads something: %s", load)
	}
}

// A page of the story and a page of the hostile record differ in their data only: all
// the markup is the program's own.
func TestMarkupIsTheSame(t *testing.T) {
	w := viewtest.New(t, session.Store{Root: t.TempDir()})
	viewtest.HostileRecord(w)
	data := regexp.MustCompile(`(?s)(<script type="application/json"[^>]*>)([^<>]*)</script>\n`)
	strip := func(html string) string { return data.ReplaceAllString(html, "") }
	if a, b := strip(render(t, story(t))), strip(render(t, w.S)); a != b {
		t.Errorf("the markup depends on the data: %d and %d bytes", len(a), len(b))
	}
}

func TestRenderLeavesNothingBehind(t *testing.T) {
	s := story(t)
	old := render(t, s)
	before := filesIn(t, s.Dir)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := RenderFile(ctx, s, time.Now(), nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if after := filesIn(t, s.Dir); after != before {
		t.Errorf("left behind: %s, before %s", after, before)
	}
	if data, err := os.ReadFile(s.Path(session.ChatHTMLFile)); err != nil || string(data) != old {
		t.Errorf("the old page is gone: %v", err)
	}
}

func filesIn(t *testing.T, dir string) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(append(list, hidden...), " ")
}

// A session without any file but its directory, or with damaged ones, has a page.
func TestRenderDamaged(t *testing.T) {
	w := viewtest.New(t, session.Store{Root: t.TempDir()})
	render(t, w.S)
	for _, name := range []string{session.CheckpointFile, session.TasksFile, session.SeedMetaFile,
		session.SummaryFile} {
		if err := os.WriteFile(w.S.Path(name), []byte(`{"tokens_used":"many`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.Raw("5\nnull\n\xff\n{\"type\":\"stop\"\n")
	w.Event(0, "stop", viewtest.P{"reason": "error"})
	w.Flush()
	html := render(t, w.S)
	for _, want := range []string{`"unreadable":4`, session.CheckpointFile + ":", session.TasksFile + ":"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page does not say %s", want)
		}
	}
}

// The diff of a task is text, and a long one names the command for the rest.
func TestDiffInPage(t *testing.T) {
	r := &Report{row: row{Overview: session.Overview{ID: "S"}},
		Tasks: []ReportTask{{ID: "T-001", Commit: viewtest.FirstSHA, Iterations: 1}}}
	for _, c := range []struct {
		patch string
		cut   bool
		want  string
	}{
		{"+</pre><script>\x1b\n", false, `<span class="add">&#43;&lt;/pre&gt;&lt;script&gt;`},
		{"-a\n", true, "truncated; the rest: git tilth diff T-001 S"},
		{strings.Repeat("+a\n", maxTaskPatch), false, "truncated; the rest: git tilth diff T-001 S"},
	} {
		_, html := r.html(func(string) (string, bool) { return c.patch, c.cut })
		if !strings.Contains(html, c.want) || strings.ContainsRune(html, '\x1b') {
			t.Errorf("%.20q: lacks %s", c.patch, c.want)
		}
	}
}
