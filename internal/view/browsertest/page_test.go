package browsertest

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/view/viewtest"
)

func (p *page) press(keys string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys))
}

// cursor is the event under the keyboard.
func (p *page) cursor() string {
	p.t.Helper()
	return eval[string](p, `document.querySelector("article.cursor")?.id || ""`)
}

// find searches like a user. (The protocol sends a key and its character separately, so the slash that focuses the
// field is also typed into it, unlike with a real key.)
func (p *page) find(text string) {
	p.t.Helper()
	p.press("/")
	p.until(`document.activeElement.id === "find"`)
	p.do(chromedp.Evaluate[chromedp.Void](`document.getElementById("find").value = ""`))
	p.press(text)
}

// The overview answers a user's first questions after a run.
func TestOverview(t *testing.T) {
	_, path := rendered(t, viewtest.Story)
	p := open(t)
	url := p.visit(path)
	p.until(`document.querySelector(".plot svg") !== null`)
	text := eval[string](p, `document.querySelector("header.mast").innerText + document.getElementById("overview").innerText`)
	for _, want := range []string{
		"T-003 failed: the iteration cap was reached. 2 of 4 tasks done", "acme/large-4, reviewed by acme/judge-2",
		"12 of 12 · 100%", "closest", "3 rejections", "1 blocked", "Parse durations like 3w2d", "not started",
		"A schedule for grafting fruit trees", "Should a graft that was missed be listed as due?",
		"Largest: 48,400 tokens",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the overview does not say %q", want)
		}
	}
	p.until(`document.querySelectorAll(".plot svg rect").length === 38`)
	if n := eval[int](p, `document.querySelectorAll(".meter[role=meter]").length`); n != 4 {
		t.Errorf("%d meters for 4 caps", n)
	}
	p.quiet()
	p.alone(url)
}

// Every event can be linked to, and its link opens the page there.
func TestAnchors(t *testing.T) {
	_, path := rendered(t, viewtest.Story)
	p := open(t)
	p.visit(path)
	id := eval[string](p, `document.querySelector(".mark.reject").getAttribute("href")`)
	p.do(chromedp.Click(chromedp.CSS(".mark.reject")))
	p.until(`document.querySelector("` + id + `.t-evaluator_verdict.cursor") !== null`)
	p.do(chromedp.Navigate("about:blank"))
	p.visit(path + id)
	p.until(`(() => { const r = document.querySelector("` + id + `")?.getBoundingClientRect(); return r && r.top >= 0 && r.top < innerHeight / 2; })()`)
	// A link turns off a filter that hides its target.
	p.do(chromedp.Click(chromedp.CSS(`.chip[data-kind="commit"]`)))
	p.until(`document.querySelector("` + id + `") === null`)
	p.do(chromedp.Evaluate[chromedp.Void](`location.hash = ""; location.hash = "` + id + `"`))
	p.until(`document.querySelector("` + id + `.cursor") !== null`)
	p.quiet()
}

func TestKeyboard(t *testing.T) {
	_, path := rendered(t, viewtest.Story)
	p := open(t)
	p.visit(path)
	p.press("j")
	p.until(`document.querySelector("article.cursor")?.id === "e0"`)
	p.press("jj")
	p.until(`document.querySelector("article.cursor")?.id === "e2"`)
	p.press("k")
	p.until(`document.querySelector("article.cursor")?.id === "e1"`)
	p.press("v")
	p.until(`document.querySelector("article.cursor")?.classList.contains("t-evaluator_verdict")`)
	first := p.cursor()
	p.press("v")
	p.until(`document.querySelector("article.cursor")?.id !== "` + first + `"`)
	p.press("J")
	p.until(`document.querySelector("article.cursor")?.classList.contains("t-context_reset")`)
	if got := eval[string](p, `document.activeElement.tagName`); got != "ARTICLE" {
		t.Errorf("the focus is on %s, not on the event", got)
	}
	p.press("?")
	p.until(`document.getElementById("help").open`)
	p.press("\x1b")
	p.until(`!document.getElementById("help").open`)
	dark := eval[bool](p, `matchMedia("(prefers-color-scheme: dark)").matches`)
	p.press("t")
	p.until(`document.documentElement.dataset.theme === "` + map[bool]string{true: "light", false: "dark"}[dark] + `"`)
	p.find("y") // typed into the field, not taken for the key
	p.until(`document.getElementById("find").value === "y"`)
	p.quiet()
}

func TestSearch(t *testing.T) {
	_, path := rendered(t, viewtest.Story)
	p := open(t)
	p.visit(path)
	p.find("compares parse WITH itself")
	p.until(`document.getElementById("found").textContent === "1"`)
	p.press("\r")
	p.until(`document.getElementById("found").textContent === "1 of 1" && [...document.querySelectorAll("article.cursor mark")].map((m) => m.textContent).join() === "compares Parse with itself"`)
	p.press("\x1b")
	p.until(`document.querySelectorAll("mark").length === 0`)
	// Text with JSON escapes is found in its displayed form.
	p.find("want 23")
	p.until(`document.getElementById("found").textContent === "1"`)
	p.do(chromedp.Evaluate[chromedp.Void](`const f = document.getElementById("find"); f.value = "Parse(\"3w2d\")"; f.dispatchEvent(new Event("input"))`))
	p.until(`document.getElementById("found").textContent === "6"`)
	p.do(chromedp.Click(chromedp.CSS(`.chip[data-kind="matches"]`)))
	p.until(`document.querySelectorAll("article").length === 6`)
	p.do(chromedp.Evaluate[chromedp.Void](`f.value = "nowhere to be found"; f.dispatchEvent(new Event("input"))`))
	p.until(`document.getElementById("found").textContent === "none" && document.querySelectorAll("article").length === 0`)
	p.quiet()
}

func TestFilters(t *testing.T) {
	_, path := rendered(t, viewtest.Story)
	p := open(t)
	p.visit(path)
	p.do(chromedp.Click(chromedp.CSS(`.chip[data-kind="verdict"]`)))
	p.until(`document.querySelectorAll("article").length > 0 && [...document.querySelectorAll("article")].every((a) => a.classList.contains("verdict"))`)
	p.do(chromedp.Evaluate[chromedp.Void](`const s = document.getElementById("pick-task"); s.value = "T-003"; s.dispatchEvent(new Event("change"))`))
	p.until(`document.querySelectorAll("article.t-evaluator_verdict").length === 3`)
	if n := eval[int](p, `document.querySelectorAll("#feed .group").length`); n != 1 {
		t.Errorf("%d sections are headed for one task", n)
	}
	p.press("\x1b")
	p.until(`document.querySelectorAll("article.t-model_call").length > 0 && document.getElementById("pick-task").value === ""`)
	p.quiet()
}

// Tasks with interleaved events have one row, one section and one place on the axis each.
func TestLanes(t *testing.T) {
	_, path := rendered(t, viewtest.Lanes)
	p := open(t)
	p.visit(path)
	if got := eval[string](p, `[...document.querySelectorAll("#outline li")].map((li) => li.textContent.slice(0, 6)).join()`); got !=
		"·Seed,·Run,✓T-001,✓T-002,■T-003,·Stop " {
		t.Errorf("the sections are %s", got)
	}
	p.until(`document.querySelectorAll(".furrow .stretch").length === 3`)
	if !eval[bool](p, `(() => {
		const [one, two, three] = [...document.querySelectorAll(".furrow .stretch")].map((e) => e.getBoundingClientRect());
		return one.left < two.right && two.left < one.right && two.left < three.right && one.top < two.top && two.top < three.top;
	})()`) {
		t.Error("the rows do not show that the tasks overlap in time")
	}
	p.do(chromedp.Click(chromedp.CSS(`.chip[data-kind="verdict"]`)))
	p.until(`document.querySelectorAll("#feed article").length === 6`)
	order := `[...document.querySelectorAll("#feed .group h3, #feed article")].map((e) => e.tagName === "H3" ? e.textContent.slice(0, 5) : e.innerText.includes("Accepted") ? "✓" : "✕").join("")`
	if got := eval[string](p, order); got != "T-001✕✓T-002✓T-003✕✕✕" {
		t.Errorf("the verdicts stand as %s", got)
	}
	if got := eval[string](p, `document.getElementById("facts").textContent`); strings.Contains(got, "2 h") {
		t.Errorf("time that lanes share is counted twice: %s", got)
	}
	p.quiet()
}

// Events that a rewind superseded are folded under its heading and can be shown; an undo folds those in between.
func TestFoldsSuperseded(t *testing.T) {
	superseded := `[...document.querySelectorAll("#feed .group")].filter((g) => g.innerText.includes("superseded"))`
	back := func(undone bool) string {
		_, path := rendered(t, func(w *viewtest.Writer) {
			size := func() int64 {
				w.Flush()
				fi, err := os.Stat(w.S.Path(session.RecordFile))
				if err != nil {
					t.Fatal(err)
				}
				return fi.Size()
			}
			w.Event(0, "seed_committed", viewtest.P{"sha": "abcdef1", "branch": "b"})
			counts := size()
			w.Event(time.Second, "context_reset", viewtest.P{"task_id": "T-001"})
			w.Event(time.Second, "nudge", viewtest.P{"task_id": "T-001", "iter": 1, "content": "the first attempt"})
			end := size()
			w.Event(time.Second, "session_rewound", viewtest.P{"to": "T-001", "undo": 1, "counts": counts,
				"tasks": viewtest.P{"T-001": viewtest.P{"status": "pending"}}})
			w.Event(time.Second, "context_reset", viewtest.P{"task_id": "T-001"})
			w.Event(time.Second, "nudge", viewtest.P{"task_id": "T-001", "iter": 1, "content": "the second attempt"})
			if undone {
				w.Event(time.Second, "session_undone", viewtest.P{"undo": 1, "redo": 2, "counts": end,
					"tasks": viewtest.P{"T-001": viewtest.P{"status": "pending"}}})
			}
			w.Flush()
		})
		return path
	}
	p := open(t)
	p.visit(back(false))
	p.until(superseded + `.length === 1 && document.getElementById("feed").innerText.includes("second attempt")`)
	if eval[bool](p, `document.getElementById("feed").innerText.includes("first attempt")`) {
		t.Error("a superseded attempt is not folded")
	}
	p.do(chromedp.Evaluate[chromedp.Void](superseded + `[0].querySelector("button").click()`))
	p.until(`document.getElementById("feed").innerText.includes("first attempt")`)
	p.visit(back(true))
	p.until(superseded + `.length === 2 && document.getElementById("feed").innerText.includes("first attempt")`)
	if eval[bool](p, `document.getElementById("feed").innerText.includes("second attempt")`) {
		t.Error("what an undo superseded is not folded")
	}
	p.quiet()
}

// The page works with a screen reader and without a mouse.
func TestAccessible(t *testing.T) {
	_, path := rendered(t, viewtest.Story)
	p := open(t)
	p.visit(path)
	p.until(`document.querySelector("svg[role=img]") !== null`)
	for _, what := range []string{
		`document.documentElement.lang === "en"`,
		`document.querySelectorAll("main").length === 1 && document.querySelectorAll("h1").length === 1`,
		`[...document.querySelectorAll("button, a[href], input, select, summary")].every((e) => (e.getAttribute("aria-label") || e.textContent || e.title || "").trim() !== "" || e.labels?.length > 0)`,
		`[...document.querySelectorAll("article")].every((a) => a.tabIndex === -1 && a.hasAttribute("aria-posinset"))`,
		`[...document.querySelectorAll("[aria-labelledby]")].every((e) => document.getElementById(e.getAttribute("aria-labelledby")))`,
		`document.querySelector("svg[role=img]").getAttribute("aria-label").includes("tokens")`,
		`new Set([...document.querySelectorAll("[id]")].map((e) => e.id)).size === document.querySelectorAll("[id]").length`,
	} {
		if !eval[bool](p, what) {
			t.Errorf("does not hold: %s", what)
		}
	}
	for _, theme := range []string{"light", "dark"} {
		p.scheme(theme)
		if got := eval[string](p, contrast); got != "" {
			t.Errorf("%s: too little contrast: %s", theme, got)
		}
	}
}

// contrast lists texts with too little contrast to their background (WCAG AA).
const contrast = `(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (c) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const lum = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = (e) => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] > 250) return c; } return [255, 255, 255]; };
  const bad = new Set();
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || ["SCRIPT", "STYLE", "NOSCRIPT"].includes(e.tagName)) continue;
    const [a, b] = [lum(rgba(getComputedStyle(e).color)), lum(ground(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.add(e.tagName + "." + e.className + " " + ratio.toFixed(2));
  }
  return [...bad].join("; ");
})()`
