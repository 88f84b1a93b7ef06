package view

import (
	"bytes"
	"html/template"
	"strings"

	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// morning is the review as the page begins with it, in the HTML itself: it is read without the page's script too.
var morning = template.Must(template.New("morning").Funcs(template.FuncMap{"shown": text.VisibleLine,
	"word": statusWord, "first": func(t *ReviewTask) string {
		return strings.TrimSuffix(strings.TrimSuffix(t.Reason, t.Cause), ": ")
	}}).Parse(`<section class="morning" id="morning" aria-label="Review" data-stop="{{.Stop}}" data-state="{{.State}}">
{{with .Stopped}}<p class="stopped">{{shown .}}</p>
{{end}}<p class="dim spent">{{.Spent}}</p>
{{with .Commands}}<p class="first"><a href="#h-next">next</a> <code>{{shown (index . 0).Line}}</code></p>
{{end}}{{with .Risks}}<p class="first"><a href="#h-look">{{len .}} to check</a>{{$.Before}}</p>
{{end}}<table class="tasks">
{{range .Tasks}}<tr class="{{.Status}}"><th scope="row">{{shown .ID}}</th><td class="word">{{word .Status}}</td><td>{{shown .Title}}
{{if .Reason}}<p class="why">{{shown (first .)}}</p>{{if .Cause}}<p class="cause">{{shown .Cause}}</p>{{end}}
{{end}}</td></tr>
{{end}}{{with .Done}}<tr class="done"><th scope="row" colspan="2" class="word">{{len .}} done</th><td>{{range $i, $t := .}}{{if $i}} ·
{{end}}{{shown $t.ID}} {{shown $t.Title}}{{end}}</td></tr>
{{end}}</table>
{{with .HookSaid}}<p>The commit hook says:</p><pre>{{range .}}{{shown .}}
{{end}}</pre>
{{end}}{{with .Risks}}<h2 id="h-look">Check{{$.Before}}</h2>
<ul>{{range .}}<li>{{shown .}}</li>
{{end}}</ul>
{{end}}{{with .Commands}}<h2 id="h-next">Next</h2>
<table class="next">{{range .}}<tr><td><code>{{shown .Line}}</code></td><td class="dim">{{shown .Why}}</td></tr>
{{end}}</table>
{{end}}</section>
`))

// mostInPage is how many things to look at the beginning of a page names.
const mostInPage = 40

// html returns the headline and the review section of a page.
func (r *Review) html() (headline, section string) {
	if r == nil {
		return "", ""
	}
	data := struct {
		Stopped, Spent  string
		State, Before   string
		Tasks, Done     []*ReviewTask
		HookSaid, Risks []string
		Stop            string
		Commands        []Command
	}{State: r.State, Before: r.beforeTaking(), Stop: r.Stop, Stopped: r.stopped(), Spent: r.spent(),
		HookSaid: r.HookSaid, Commands: r.Commands}
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if t.Status == session.TaskDone {
			data.Done = append(data.Done, t)
		} else {
			data.Tasks = append(data.Tasks, t)
		}
	}
	for _, risk := range r.risks() {
		data.Risks = append(data.Risks, risk.task+"  "+risk.says)
	}
	data.Risks = data.Risks[:min(len(data.Risks), mostInPage)]
	var b bytes.Buffer
	if err := morning.Execute(&b, data); err != nil {
		return "", "" // the page is whole without it
	}
	return template.HTMLEscapeString(text.VisibleLine(r.headline())), b.String()
}
