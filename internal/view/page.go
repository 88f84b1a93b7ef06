package view

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"strings"
	"sync"

	"github.com/git-tilth/git-tilth/internal/record"
)

//go:embed page
var pageFiles embed.FS

// The parts of the page's script, in the order of their dependencies.
var pageScripts = []string{
	"text.js", "data.js", "groups.js", "overview.js", "charts.js", "folds.js", "event.js",
	"feed.js", "search.js", "controls.js", "live.js", "main.js",
}

// A document is an HTML page with inline style and script. Its content security policy has their hashes, so that no
// other style or script works.
type document struct {
	before, after string // the page before and after the data
	policy        string
}

var staticPage = sync.OnceValue(func() document {
	return assemble("page.html", pageScripts, "")
})

var livePage = sync.OnceValue(func() document {
	return assemble("page.html", pageScripts, "connect-src 'self'")
})

var indexPage = sync.OnceValue(func() document {
	return assemble("index.html", []string{"text.js", "index.js"}, "connect-src 'self'")
})

// assemble puts a page together. more is appended to its policy.
func assemble(html string, scripts []string, more string) document {
	css := readPage("page.css")
	var js strings.Builder
	js.WriteString("\"use strict\";\n(() => {\n" + words())
	for _, name := range scripts {
		js.WriteString(readPage(name))
	}
	js.WriteString("})();\n")
	d := document{policy: strings.Join([]string{
		"default-src 'none'", "script-src " + sourceHash(js.String()), "style-src " + sourceHash(css),
		"img-src data:", "base-uri 'none'", "form-action 'none'",
	}, "; ")}
	if more != "" {
		d.policy += "; " + more
	}
	page := strings.NewReplacer("{{csp}}", d.policy, "{{style}}", css, "{{script}}",
		js.String()).Replace(readPage(html))
	d.before, d.after, _ = strings.Cut(page, "{{data}}")
	return d
}

// beginning returns the page before the data, with the report on a session, or without one for nil.
func (d document) beginning(r *Report, patch func(sha string) (string, bool)) string {
	headline, section := r.html(patch)
	return strings.NewReplacer("{{headline}}", cmp.Or(headline, "Loading the record…"), "{{morning}}", section).
		Replace(d.before)
}

// words returns the texts for reasons and event types that the page's script looks up.
func words() string {
	reasons := map[string]string{}
	for _, r := range record.Reasons() {
		reasons[r.Word] = r.Says
	}
	return "const REASONS = new Map(Object.entries(" + string(record.JSON(reasons)) + "));\n" +
		"const LABELS = new Map(Object.entries(" + string(record.JSON(record.Labels())) + "));\n"
}

func readPage(name string) string {
	data, err := pageFiles.ReadFile("page/" + name)
	if err != nil {
		return "" // the files are part of the binary; a test reads each of them
	}
	return string(data)
}

func sourceHash(s string) string {
	h := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(h[:]) + "'"
}
