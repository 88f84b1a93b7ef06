package view

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/git-tilth/git-tilth/internal/text"
)

// markdown is the review as the text of a pull request. Titles aside, all words in it are a model's: none of them is
// markup, mentions a person or closes an issue.
func (r *Review) markdown(out *bufio.Writer, only string) {
	fmt.Fprintf(out, "%s\n\n%s; session `%s`\n\n| task | | change |\n|---|---|---|\n",
		inMarkdown(joined("; ", r.headline(), r.stopped())), r.spent(), r.SessionID)
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

// inMarkdown is a text of a worker's or a tool's as part of a page on a server, on which it links and does nothing.
func inMarkdown(s string) string { return markdownSigns.Replace(text.Inert(text.VisibleLine(s))) }

// titleInMarkdown returns a title for Markdown. Titles are the user's, so their closing words stay effective.
func titleInMarkdown(s string) string { return titleSigns.Replace(text.VisibleLine(s)) }

var titleSigns = strings.NewReplacer(`\`, `\\`, "`", "\\`", "<", "&lt;", ">", "&gt;", "|", `\|`, "&", "&amp;")
