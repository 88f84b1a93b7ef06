package browsertest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/view"
	"github.com/git-tilth/git-tilth/internal/view/viewtest"
)

// serve starts the live viewer and returns the URL of its index.
func serve(t testing.TB, store session.Store) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	url := make(chan string, 1)
	done := make(chan error, 1)
	ln, err := view.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		done <- view.Serve(ctx, ln, store, view.ServeOptions{Ready: func(u string) { url <- u },
			Rows: func() ([]session.Overview, error) {
				ids, err := store.IDs()
				return store.Overview(ids, nil), err
			}})
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
	}
	return ""
}

// shown is how many events the page counts.
const shown = `Number(/^([\d,]+) event/.exec(document.getElementById("foot").textContent)?.[1].replaceAll(",", ""))`

// A page follows its record through everything that happens to one.
func TestLive(t *testing.T) {
	store := session.Store{Root: t.TempDir()}
	w := viewtest.New(t, store)
	w.Event(0, "session_start", viewtest.P{"phase": "prep-feature"})
	w.Event(time.Second, "session_prepared", viewtest.P{"tokens_used": 1})
	w.Event(time.Second, "seed_committed", viewtest.P{"sha": viewtest.SeedSHA})
	w.Flush()
	seed, err := os.ReadFile(w.S.Path(session.RecordFile))
	if err != nil {
		t.Fatal(err)
	}
	before := listing(t, w.S.Dir)
	p := open(t)
	p.do(chromedp.Navigate(serve(t, store) + "s/" + w.S.ID + "/"))
	p.until(ready)
	p.until(shown + ` === 3`)
	p.until(`document.getElementById("sessions").offsetParent !== null`) // the link to all sessions is to be seen

	// An appended event appears; the page's clock measures the delay.
	w.Event(time.Second, "nudge", viewtest.Task("T-001", 1, viewtest.P{"content": "the first that is new"}))
	start := time.Now()
	w.Flush()
	p.until(`document.getElementById("feed").textContent.includes("the first that is new")`)
	t.Logf("an appended event showed after %s", time.Since(start).Round(time.Millisecond))

	// A torn line shows nothing until its rest arrives.
	torn := `{"ts":"2026-06-11T22:10:00Z","type":"nudge","payload":{"task_id":"T-001","iter":1,"content":"torn and mended"}}`
	w.Raw(torn[:60])
	w.Flush()
	p.until(shown + ` === 4`)
	w2 := viewtest.Open(t, w.S)
	w2.Raw(torn[60:] + "\n")
	w2.Flush()
	p.until(`document.getElementById("feed").textContent.includes("torn and mended") && ` + shown + ` === 5`)

	// A crash leaves a torn line; the resume cuts it off and continues.
	w2.Raw(`{"ts":"2026-06-11T22:11:00Z","type":"model_call","payl`)
	w2.Flush()
	rec, err := w.S.OpenRecord(record.Options{Clock: func() time.Time { return viewtest.Start.Add(time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Append(&record.SessionResume{Plan: "going on after the crash"}); err != nil {
		t.Fatal(err)
	}
	rec.Close()
	p.until(`document.getElementById("feed").textContent.includes("going on after the crash") && document.getElementById("outline").textContent.includes("Resumed")`)
	if resets := eval[any](p, `document.documentElement.dataset.resets`); resets != nil {
		t.Errorf("a resume made the page start again (%v times)", resets)
	}

	// A rewind removes everything after the seed, and the page shows later events.
	if err := os.Truncate(w.S.Path(session.RecordFile), int64(len(seed))); err != nil {
		t.Fatal(err)
	}
	p.until(shown + ` === 3 && !document.body.textContent.includes("going on after the crash")`)
	w3 := viewtest.Open(t, w.S)
	w3.Event(time.Minute, "nudge", viewtest.Task("T-001", 1, viewtest.P{"content": "after the rewind"}))
	w3.Flush()
	p.until(shown + ` === 4 && document.getElementById("feed").textContent.includes("after the rewind")`)

	// Another, longer record replaces the record that was read.
	if err := jsonl.WriteFile(w.S.Path(session.RecordFile), bytes.Repeat(seed, 40)); err != nil {
		t.Fatal(err)
	}
	p.until(shown + ` === 120 && !document.body.textContent.includes("after the rewind")`)
	p.quiet()
	if after := listing(t, w.S.Dir); after != before {
		t.Errorf("the viewer changed the session's directory: %s, before %s", after, before)
	}
}

// listing names the files of a directory.
func listing(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// The index leads to each session's page.
func TestIndex(t *testing.T) {
	store := session.Store{Root: t.TempDir()}
	w := viewtest.New(t, store)
	viewtest.Story(w)
	p := open(t)
	p.do(chromedp.Navigate(serve(t, store)))
	p.until(ready + ` && document.querySelectorAll("#sessions li").length === 1`)
	p.shot("index", false)
	p.do(chromedp.Click(chromedp.CSS("#sessions a")))
	p.until(ready + ` && document.querySelectorAll("article").length > 0`)
	p.quiet()
}

// New events keep parts unfolded, and the headline shows a running session while its lock is held.
func TestLiveKeepsThePlace(t *testing.T) {
	store := session.Store{Root: t.TempDir()}
	w := viewtest.New(t, store)
	viewtest.Story(w)
	unlock, err := w.S.Lock(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	p := open(t)
	p.do(chromedp.Navigate(serve(t, store) + "s/" + w.S.ID + "/"))
	p.until(ready)
	p.until(shown + ` === 139 && document.querySelector("h1").textContent === "Running: 2 of 4 tasks done"`)
	p.shot("live", false)
	p.do(chromedp.Click(chromedp.CSS(".brief summary")))
	p.until(`document.querySelector(".brief[open] ul") !== null`)
	w.Event(time.Minute, "session_resume", viewtest.P{"last_stop": "iter_cap", "retried": []string{"T-003"}})
	w.Event(time.Minute, "model_call", viewtest.Task("T-003", 1, viewtest.P{"prompt_tokens": 1000, "eval_tokens": 1}))
	w.Flush()
	p.until(shown + ` === 141 && document.querySelectorAll(".plot svg rect").length === 39`)
	if !eval[bool](p, `document.querySelector(".brief[open] ul") !== null`) {
		t.Error("an event folded what the reader had unfolded")
	}
	unlock()
	p.until(`document.querySelector("h1").textContent.startsWith("Crashed: no stop was recorded")`)
	p.quiet()
}

// An event of a lane that is not the newest one is put into its own section.
func TestLiveLanes(t *testing.T) {
	store := session.Store{Root: t.TempDir()}
	w := viewtest.New(t, store)
	nudge := func(task, says string) {
		w.Event(time.Second, "nudge", viewtest.Task(task, 1, viewtest.P{"content": says}))
	}
	w.Event(0, "session_start", viewtest.P{"phase": "run"})
	for i := range 30 {
		nudge("T-001", fmt.Sprint("one ", i))
		nudge("T-002", fmt.Sprint("two ", i))
	}
	w.Flush()
	p := open(t)
	p.do(chromedp.Navigate(serve(t, store) + "s/" + w.S.ID + "/"))
	p.until(ready)
	p.until(shown + ` === 61`)
	for i := 30; i < 60; i++ {
		nudge("T-001", fmt.Sprint("one ", i))
		nudge("T-002", fmt.Sprint("two ", i))
	}
	w.Flush()
	p.until(shown + ` === 121`)
	p.until(`document.querySelectorAll("#outline li").length === 3`)
	p.press("G")
	p.until(`document.getElementById("feed").innerText.includes("two 59")`)
	drawn := eval[string](p, `[...document.querySelectorAll("#feed article p")].map((e) => e.innerText).filter((s) => /^(one|two) [0-9]+$/.test(s)).join()`)
	var want []string
	for _, lane := range []string{"one ", "two "} {
		for i := range 60 {
			want = append(want, fmt.Sprint(lane, i))
		}
	}
	// Events far from the window may not be drawn; drawn events are in the order of their lane, one lane after another.
	at, shown := 0, strings.Split(drawn, ",")
	for _, said := range shown {
		next := slices.Index(want[at:], said)
		if next < 0 {
			t.Fatalf("%q is out of order: %s", said, drawn)
		}
		at += next + 1
	}
	if len(shown) < len(want)/3 {
		t.Errorf("the conversation is %s", drawn)
	}
	p.quiet()
}

func TestHostileRecordLive(t *testing.T) {
	store := session.Store{Root: t.TempDir()}
	w := viewtest.New(t, store)
	viewtest.HostileRecord(w)
	p := open(t)
	p.do(chromedp.Navigate(serve(t, store) + "s/" + w.S.ID + "/"))
	p.until(ready)
	p.until(shown + ` > 300`)
	checkHostile(t, p)
	p.quiet()
}
