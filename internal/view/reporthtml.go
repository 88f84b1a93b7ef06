package view

import (
	"bytes"
	"html/template"
	"strings"
	"sync"

	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// morning is the report at the top of a page: the outcome first, then each task. It is part of the HTML, so a browser
// shows it without JavaScript. Few commands need it, so it is parsed when it is used.
var morning = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("morning").Funcs(template.FuncMap{"shown": text.VisibleLine,
		"word": statusWord, "first": (*ReportTask).first,
	}).Parse(morningHTML))
})

const morningHTML = `{{define "facts"}}<dl class="labels">
{{range .}}{{if .Says}}<div><dt>{{.Label}}</dt>{{range .Says}}<dd>{{shown .}}</dd>
{{end}}</div>{{end}}{{end}}</dl>{{end -}}
{{define "command"}}<code>{{shown .}}</code> <button type="button" class="copy" data-copy="{{shown .}}">Copy</button>{{end -}}
<section class="morning" id="morning" aria-label="Review" data-stop="{{.Stop}}" data-state="{{.State}}">
{{with .Stopped}}<p class="stopped">{{shown .}}</p>
{{end}}{{template "facts" .Facts}}
{{range .Notices}}<p class="notice">{{shown .}}</p>
{{end}}{{with .Commands}}<p class="first"><a href="#h-next">next</a> {{template "command" (index . 0).Line}}</p>
{{end}}{{with .Risks}}<p class="first"><a href="#h-look">{{len .}} to check</a></p>
{{end}}<table class="tasks">
{{range .Open}}<tr class="{{.Status}}"><th scope="row">{{shown .ID}}</th><td class="word">{{word .Status}}</td><td>{{shown .Title}}
{{if .Reason}}<p class="why">{{shown (first .)}}</p>{{if .Cause}}<p class="cause">{{shown .Cause}}</p>{{end}}
{{end}}</td></tr>
{{end}}{{with .Done}}<tr class="done"><th scope="row" colspan="2" class="word">{{len .}} done</th><td>{{range $i, $t := .}}{{if $i}} ·
{{end}}{{shown $t.ID}} {{shown $t.Title}}{{end}}</td></tr>
{{end}}</table>
{{with .HookSaid}}<p>The commit hook says:</p><pre>{{range .}}{{shown .}}
{{end}}</pre>
{{end}}{{with .Risks}}<h2 id="h-look">To check</h2>
<ul>{{range .}}<li>{{shown .}}</li>
{{end}}</ul>
{{end}}{{with .Commands}}<h2 id="h-next">Next</h2>
<table class="next">{{range .}}<tr><td>{{template "command" .Line}}</td><td class="dim">{{shown .Why}}</td></tr>
{{end}}</table>
{{end}}</section>
{{with .Each}}<section class="morning each" aria-label="Tasks">
<h2>Tasks</h2>
{{range .}}<article class="{{.Status}}"><h3>{{shown .ID}} {{shown .Title}} <span class="word">{{word .Status}}</span></h3>
{{template "facts" .Facts}}
{{with .Patch}}<details><summary>Diff</summary><pre class="diff">{{range .}}<span class="{{.Label}}">{{index .Says 0}}</span>{{end}}</pre></details>
{{end}}</article>
{{end}}</section>
{{end}}`

// Limits of the report in a page.
const (
	mostInPage    = 40        // points to check
	maxTaskPatch  = 256 << 10 // bytes of one task's diff
	maxTaskPatchs = 4 << 20   // bytes of all of them
)

// labelled is a fact with its label.
type labelled struct {
	Label string
	Says  []string
}

// fact returns a labelled fact of the texts that are not empty.
func fact(label string, says ...string) labelled {
	f := labelled{Label: label}
	for _, s := range says {
		if s != "" {
			f.Says = append(f.Says, s)
		}
	}
	return f
}

// pageTask is a task in a page.
type pageTask struct {
	*ReportTask
	Facts []labelled
	Patch []labelled // the lines of its diff, labelled with their kind
}

// html returns the headline and the report of a page. patch returns the diff of a commit.
func (r *Report) html(patch func(sha string) (string, bool)) (headline, section string) {
	if r == nil {
		return "", ""
	}
	cost, tokens := r.costWords()
	data := struct {
		Stopped, State, Stop     string
		Facts                    []labelled
		Open, Done               []*ReportTask
		Each                     []pageTask
		Notices, HookSaid, Risks []string
		Commands                 []Command
	}{State: r.State, Stop: r.LastStop, Stopped: r.stopped(), Notices: r.notices(),
		HookSaid: r.hookSaid(), Commands: r.Commands, Done: r.done(), Facts: []labelled{
			fact("Task list", r.Label), fact("Branch", r.Branch), fact("Ran", r.span()), fact("Cost", cost),
			fact("Tokens", tokens), fact("Worker", r.Worker), fact("Reviewer", r.Reviewer)}}
	room := maxTaskPatchs
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if t.Status != session.TaskDone {
			data.Open = append(data.Open, t)
		}
		one := pageTask{ReportTask: t, Facts: t.facts()}
		if t.Commit != "" && patch != nil {
			diff, cut := patch(t.Commit)
			if most := min(maxTaskPatch, room); cut || len(diff) > most {
				diff = text.HeadBytes(diff, most) + "\n@ truncated; the rest: git tilth diff " + t.ID + " " +
					r.ID
			}
			one.Patch = patchLines(diff)
			room -= len(diff)
		}
		if t.Iterations > 0 || t.Verdict != "" {
			data.Each = append(data.Each, one)
		}
	}
	for _, risk := range r.risks() {
		data.Risks = append(data.Risks, risk.task+"  "+risk.says)
	}
	data.Risks = data.Risks[:min(len(data.Risks), mostInPage)]
	var b bytes.Buffer
	if err := morning().Execute(&b, data); err != nil {
		return "", "" // the page is whole without it
	}
	return template.HTMLEscapeString(text.VisibleLine(r.headline())), b.String()
}

// facts returns the checks of a task, the verdict in words, the hand-in, the cost and the files.
func (t *ReportTask) facts() []labelled {
	verdict := map[string]string{"accept": "accepted", "reject": "rejected"}[t.Verdict]
	if who := t.By + t.Reviewer; verdict != "" {
		verdict += prefixed(" by ", who) + prefixed(": ", t.Acceptance)
	}
	handIn := []string{t.Summary}
	for _, c := range t.Coverage {
		handIn = append(handIn, "- "+joined(": ", oneLine(c.Criterion),
			joined(", ", oneLine(c.AddressedBy), oneLine(c.Evidence))))
	}
	var stashed []string
	if t.Aside != nil {
		stashed = append([]string{"in kept.git, " + t.Aside.Ref}, t.Aside.Files...)
	}
	return []labelled{fact("Checks", strings.Join(t.Checks, "; ")), fact("Verdict", verdict),
		fact("Rejections", t.Rejected...), fact("Hand-in", handIn...), fact("Effort", t.effort()),
		fact("Files", t.Changed...), fact("Stashed", stashed...), fact("Output", t.Output...)}
}

// patchLines returns the lines of a diff, each with its kind: add, del or hunk.
func patchLines(diff string) (lines []labelled) {
	kinds := map[byte]string{'+': "add", '-': "del", '@': "hunk"}
	for line := range strings.Lines(diff) {
		lines = append(lines, fact(kinds[line[0]], text.Visible(strings.TrimRight(line, "\r\n"))+"\n"))
	}
	return lines
}
