// Package browsertest opens the pages of package view in Chromium.
package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/view"
	"github.com/git-tilth/git-tilth/internal/view/viewtest"
)

// patience limits every wait, so that a broken page ends a test instead of blocking it.
const patience = 30 * time.Second

// page is one tab with its console errors and its network requests.
type page struct {
	ctx context.Context
	t   testing.TB

	mu       sync.Mutex
	problems []string
	requests []string
}

// chromium is the browser to use. In CI it must exist.
func chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("chromium not installed")
	}
	t.Skip("chromium not installed")
	return ""
}

// open starts a browser with an empty profile.
func open(t testing.TB) *page {
	t.Helper()
	if t, ok := t.(*testing.T); ok {
		t.Parallel() // each has its own browser, and mostly waits for it
	}
	opts := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(chromium(t)), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 900),
		chromedp.Flag("headless", true), chromedp.Flag("no-sandbox", true), chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("no-first-run", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-default-apps", true),
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, opts...)
	t.Cleanup(cancel)
	p := &page{t: t}
	p.ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	p.do() // starts the browser
	if err := chromedp.Listen(p.ctx, p.listen); err != nil {
		t.Fatal(err)
	}
	call(p, network.Enable, network.EnableParams{})
	call(p, log.Enable, cdp.Empty{})
	call(p, runtime.Enable, cdp.Empty{})
	return p
}

func (p *page) listen(ev any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch ev := ev.(type) {
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, ev.Request.URL)
	case *log.EventEntryAdded:
		p.problems = append(p.problems, fmt.Sprintf("%s: %s %s", ev.Entry.Level, ev.Entry.Text, ev.Entry.URL))
	case *runtime.EventExceptionThrown:
		p.problems = append(p.problems, exceptionText(ev.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		p.problems = append(p.problems, fmt.Sprintf("console.%s: %v", ev.Type, ev.Args))
	}
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// call sends a command of the browser's protocol.
func call[P, R any](p *page, c cdp.Command[P, R], params P) R {
	p.t.Helper()
	r, err := chromedp.Call(p.ctx, c, params)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// quiet fails the test if the page complained of anything.
func (p *page) quiet() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		p.t.Error("the page complained:", problem)
	}
}

// alone fails the test if the page asked for more than itself.
func (p *page) alone(url string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		if r != url && !strings.HasPrefix(r, "data:") && r != "about:blank" {
			p.t.Error("the page asked for", r)
		}
	}
}

// eval is the value of an expression in the page.
func eval[T any](p *page, js string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", js, err)
	}
	return v
}

// until waits for an expression to be true.
func (p *page) until(js string) {
	p.t.Helper()
	poll := chromedp.Poll[bool](js, chromedp.WithPollingTimeout(patience),
		chromedp.WithPollingInterval(20*time.Millisecond))
	for range 5 {
		_, err := chromedp.Run(p.ctx, poll)
		if err == nil {
			return
		}
		// The document that was asked may have just been replaced by the one navigated to.
		replaced := strings.Contains(err.Error(), "Cannot find context") ||
			strings.Contains(err.Error(), "Inspected target navigated")
		if !replaced {
			p.t.Fatalf("waiting for %s: %v", js, err)
		}
	}
	p.t.Fatalf("waiting for %s: the page keeps being replaced", js)
}

const ready = `document.documentElement.dataset.ready !== undefined`

// visit opens a rendered file.
func (p *page) visit(path string) string {
	p.t.Helper()
	url := "file://" + path
	p.do(chromedp.Navigate(url))
	p.until(ready)
	return url
}

// rendered creates a session, fills it and renders its page.
func rendered(t testing.TB, fill func(*viewtest.Writer)) (*session.Session, string) {
	t.Helper()
	w := viewtest.New(t, session.Store{Root: t.TempDir()})
	fill(w)
	if err := view.RenderFile(context.Background(), w.S, viewtest.Start.Add(10*time.Hour), nil, nil); err != nil {
		t.Fatal(err)
	}
	return w.S, w.S.Path(session.ChatHTMLFile)
}

// shot writes a screenshot for manual review, if requested.
func (p *page) shot(name string, full bool) {
	p.t.Helper()
	dir := os.Getenv("TILTH_SCREENSHOTS")
	if dir == "" {
		return
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.t.Fatal(err)
	}
	take := chromedp.CaptureScreenshot()
	if full {
		take = chromedp.FullScreenshot(100)
	}
	png, err := chromedp.Run(p.ctx, take)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func exceptionText(d *runtime.ExceptionDetails) string {
	if d.Exception != nil && d.Exception.Description != "" {
		return d.Exception.Description
	}
	return d.Text
}
