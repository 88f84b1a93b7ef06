package browsertest

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/git-tilth/git-tilth/internal/view/viewtest"
)

func (p *page) scheme(name string) {
	p.t.Helper()
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
}

// Screenshots for wide screens and phones, light and dark. The test itself checks that nothing is cut off sideways.
func TestLooks(t *testing.T) {
	_, path := rendered(t, viewtest.Story)
	p := open(t)
	for _, theme := range []string{"light", "dark"} {
		for _, size := range []struct {
			name          string
			width, height int64
			mobile        bool
		}{{"wide", 1360, 950, false}, {"phone", 390, 844, true}} {
			p.scheme(theme)
			call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
				Width: size.width, Height: size.height, DeviceScaleFactor: 1, Mobile: size.mobile})
			p.visit(path)
			name := theme + "-" + size.name
			p.shot(name+"-top", false)
			if over := eval[int](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
				t.Errorf("%s: the page is %d pixels wider than its window", name, over)
			}
			p.shot(name+"-full", true)
			p.do(chromedp.Evaluate[chromedp.Void](`document.getElementById("conversation").scrollIntoView()`), chromedp.WaitVisible(chromedp.CSS("article")))
			p.shot(name+"-talk", false)
			for _, at := range []string{".panel.prompts", ".t-evaluator_verdict", ".t-commit"} {
				p.until(`(() => { const e = document.querySelector("` + at + `"); if (!e) { window.scrollBy(0, 500); return false; } e.scrollIntoView({block: "start"}); return true; })()`)
				p.shot(name+"-at"+strings.ReplaceAll(at, ".", "-"), false)
			}
		}
	}
	p.quiet()
	p.alone("file://" + path)
}

// The printed page has no controls, and also the events that are not on the screen.
func TestPrint(t *testing.T) {
	_, path := rendered(t, viewtest.Story)
	p := open(t)
	p.visit(path)
	drawn := eval[int](p, `document.querySelectorAll("article").length`)
	p.do(chromedp.Evaluate[chromedp.Void](`dispatchEvent(new Event("beforeprint"))`))
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	if n := eval[int](p, `document.querySelectorAll("article").length`); n <= drawn || n != 139 {
		t.Errorf("%d events are printed, %d are on the screen", n, drawn)
	}
	if !eval[bool](p, `[".bar", ".mast-tools", "#outline"].every((s) => getComputedStyle(document.querySelector(s)).display === "none")`) {
		t.Error("controls are printed")
	}
	p.shot("print-top", false)
	p.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".t-commit").scrollIntoView()`))
	p.shot("print-talk", false)
	p.quiet()
}

func TestLinkedEventLooks(t *testing.T) {
	_, path := rendered(t, viewtest.Story)
	p := open(t)
	p.visit(path + "#e100")
	p.until(`(() => { const r = document.getElementById("e100")?.getBoundingClientRect(); return r && r.top >= 0 && r.top < innerHeight; })()`)
	p.shot("linked", false)
	p.quiet()
}

func TestHelpLooks(t *testing.T) {
	_, path := rendered(t, viewtest.Story)
	p := open(t)
	p.visit(path)
	p.press("vvjj?")
	p.until(`document.getElementById("help").open`)
	p.shot("help", false)
	p.press("\x1b")
	p.until(`!document.getElementById("help").open`)
	p.shot("cursor", false)
	p.quiet()
}
