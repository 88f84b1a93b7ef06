package browsertest

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/git-tilth/git-tilth/internal/view/viewtest"
)

// usable opens a page and waits until it reacts to a key.
func (p *page) usable(path string) time.Duration {
	p.t.Helper()
	start := time.Now()
	p.visit(path)
	p.press("j")
	p.until(`document.querySelector("article.cursor") !== null`)
	return time.Since(start)
}

// A hundred thousand events are as usable as ten: only events near the window are drawn, the rest is text.
func TestHundredThousandEvents(t *testing.T) {
	_, path := rendered(t, func(w *viewtest.Writer) { w.Long(100_000) })
	p := open(t)
	t.Logf("usable after %s", p.usable(path).Round(time.Millisecond))
	if n := eval[int](p, `document.querySelectorAll("article").length`); n > 1000 {
		t.Errorf("%d events are in the document at once", n)
	}
	p.press("G")
	p.until(`document.getElementById("e99999")?.getBoundingClientRect().top < innerHeight`)
	p.do(chromedp.Evaluate[chromedp.Void](`location.hash = "#e50000"`))
	p.until(`(() => { const r = document.getElementById("e50000")?.getBoundingClientRect(); return r && r.top >= 0 && r.top < innerHeight; })()`)
	p.find("needle-77771 ")
	p.do(chromedp.Evaluate[chromedp.Void](`const f = document.getElementById("find"); f.value = "needle-777"; f.dispatchEvent(new Event("input"))`))
	p.until(`((n) => n >= 50 && n <= 200)(Number(document.getElementById("found").textContent))`)
	p.press("\r")
	p.until(`document.querySelector("article.cursor mark")?.textContent === "needle-777"`)
	p.do(chromedp.Evaluate[chromedp.Void](`const s = document.getElementById("pick-task"); s.value = "T-020"; s.dispatchEvent(new Event("change"))`))
	p.until(`document.querySelectorAll("article").length > 0 && [...document.querySelectorAll("#feed .group h3")].every((h) => h.textContent === "T-020")`)
	p.shot("hundred-thousand", false)
	p.quiet()
}

// Benchmark100kPage measures how long a page of 100,000 events takes to react to a key.
func Benchmark100kPage(b *testing.B) {
	_, path := rendered(b, func(w *viewtest.Writer) { w.Long(100_000) })
	p := open(b)
	for b.Loop() {
		p.do(chromedp.Navigate("about:blank"))
		p.usable(path)
	}
}
