package view

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/git-tilth/git-tilth/internal/text"
)

// markdown writes the review as the text of a pull request. A model wrote all of its texts except the titles. They are
// escaped, so that they cannot add markup, mention a user or close an issue.
func (r *Report) markdown(out *bufio.Writer, only string) {
	fmt.Fprintf(out, "%s\n\n%s; session `%s`\n\n| task | | change |\n|---|---|---|\n",
		inMarkdown(joined("; ", r.headline(), r.stopped())), r.Spent(), r.ID)
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if only != "" && t.ID != only {
			continue
		}
		change := ""
		if t.Files > 0 {
			change = stat(t.Files, t.Insertions, t.Deletions)
		}
		fmt.Fprintf(out, "| %s | %s | %s |\n", t.ID+" "+titleInMarkdown(t.Title),
			statusWord(t.Status)+inMarkdown(prefixed(": ", t.Reason)), change)
	}
	checks := r.CheckLines(false)
	if t := r.Task(only); t != nil {
		checks = []string{t.checked(false)}
	}
	for i, line := range checks {
		fmt.Fprintf(out, "%s- %s\n", map[bool]string{true: "\nChecks:\n\n"}[i == 0], inMarkdown(line))
	}
	var risks []string
	for _, risk := range r.risks() {
		if only == "" || risk.task == only {
			risks = append(risks, fmt.Sprintf("- %s %s", risk.task, inMarkdown(risk.says)))
		}
	}
	if len(risks) > 0 {
		fmt.Fprintf(out, "\nTo check:\n\n%s\n", strings.Join(risks, "\n"))
	}
}

var markdownSigns = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;",
	">", "&gt;", "|", `\|`, "&", "&amp;", "@", "@\u200b", "#", "#\u200b", "!", `\!`, "://", ":\u200b//")

// inMarkdown returns an untrusted text for Markdown on a server, without effect as a link or command.
func inMarkdown(s string) string { return markdownSigns.Replace(text.Inert(text.VisibleLine(s))) }

// titleInMarkdown returns a title for Markdown. Titles that others wrote are made inert when they are imported.
func titleInMarkdown(s string) string { return titleSigns.Replace(text.VisibleLine(s)) }

var titleSigns = strings.NewReplacer(`\`, `\\`, "`", "\\`", "<", "&lt;", ">", "&gt;", "|", `\|`, "&", "&amp;")
