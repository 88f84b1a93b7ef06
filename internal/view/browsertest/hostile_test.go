package browsertest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/git-tilth/git-tilth/internal/view/viewtest"
)

// checkHostile checks that the page of a hostile record shows everything as text and runs nothing.
func checkHostile(t *testing.T, p *page) {
	t.Helper()
	// Unfold everything and gather all visible text.
	seen := eval[string](p, `(async () => {
	  let text = document.body.innerText;
	  for (let y = 0; y < document.documentElement.scrollHeight; y += innerHeight) {
	    scrollTo(0, y);
	    await new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)));
	    for (const d of document.querySelectorAll("#feed details")) d.open = true;
	    await new Promise((r) => requestAnimationFrame(r));
	    text += document.getElementById("feed").innerText;
	  }
	  return text;
	})()`)
	for _, h := range viewtest.Hostile {
		if strings.ContainsAny(h, "\x00\u2028\u202e\u200b") {
			continue // escaped; see below
		}
		if !strings.Contains(seen, strings.TrimSpace(h)) {
			t.Errorf("%q is not shown as text", h)
		}
	}
	for _, want := range []string{"U+202E", "U+2066", "U+200B", "U+FEFF", "␀", "␛", "U+009B", "U+2028", "broken \uFFFD",
		"U+D800", "😀"} {
		if !strings.Contains(seen, want) {
			t.Errorf("%q is not made visible", want)
		}
	}
	for what, want := range map[string]string{
		`typeof window.pwned`: `"undefined"`, `typeof ({}).polluted`: `"undefined"`,
		`[...document.scripts].filter((s) => !s.type).length`: `1`,
		`document.querySelectorAll("iframe, img, object, embed, form:not([method=dialog]), base, link:not([rel=icon]), meta[http-equiv=refresh]").length`: `0`,
		`document.querySelectorAll("#feed style, #feed script, #overview style, #overview script").length`:                                                `0`,
		`[...document.querySelectorAll("a[href]")].filter((a) => !/^(#|\.\.\/\.\.\/$)/.test(a.getAttribute("href"))).length`:                              `0`,
		`[...document.querySelectorAll("*")].filter((e) => [...e.attributes].some((a) => /^on/.test(a.name))).length`:                                     `0`,
	} {
		got, err := json.Marshal(eval[any](p, what))
		if err != nil || string(got) != want {
			t.Errorf("%s is %s, want %s", what, got, want)
		}
	}
}

func TestHostileRecordIsText(t *testing.T) {
	_, path := rendered(t, viewtest.HostileRecord)
	p := open(t)
	url := p.visit(path)
	text := eval[string](p, `document.getElementById("overview").innerText`)
	// Seven lines are no objects, and the last one is torn.
	if !strings.Contains(text, "lines of the record are not JSON and were left out") {
		t.Errorf("the page does not say what it left out: %.200s", text)
	}
	checkHostile(t, p)
	p.do(chromedp.Evaluate[chromedp.Void](`const f = document.getElementById("find"); f.value = "<script>"; f.dispatchEvent(new Event("input"))`))
	p.until(`Number.parseInt(document.getElementById("found").textContent) > 10`)
	if eval[string](p, `typeof window.pwned`) != "undefined" {
		t.Error("the search ran something")
	}
	p.quiet()
	p.alone(url)
}
