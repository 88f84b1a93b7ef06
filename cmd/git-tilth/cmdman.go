package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// manPages returns git-tilth(1) and one page for each command, by name. examples returns the examples of a command.
func manPages(app *cli.App, version, date string, examples func(*cli.Command) []string) map[string]string {
	head := func(page, what string) string { return manHead(page, what, version, date) }
	var list strings.Builder
	pages := map[string]string{}
	also := "git\\-tilth(1), git(1)"
	var each func(parents string, cmds []*cli.Command)
	each = func(parents string, cmds []*cli.Command) {
		for _, c := range cmds {
			if c.Hidden {
				continue
			}
			name := parents + " " + c.Name
			each(name, c.Subcommands)
			if c.Action == nil {
				continue
			}
			page := strings.ReplaceAll(name, " ", "-")
			fmt.Fprintf(&list, ".TP\n\\fB%s\\fR(1)\n%s.\n", roff(page), roff(c.Usage))
			synopsis := name + " [<options>] " + c.ArgsUsage
			pages[page] = head(page, c.Usage) + manSynopsis(synopsis) + ".SH DESCRIPTION\n" + manText(c.Usage+"."+
				"\n\n"+c.Description) + ".SH OPTIONS\n" + manFlags(c.Flags) + manExamples(examples(c)) + manExits +
				".SH SEE ALSO\n" + also + "\n"
		}
	}
	each("git tilth", app.Commands)
	pages["git-tilth"] = head("git-tilth", app.Usage) + manSynopsis(app.UsageText) + ".SH DESCRIPTION\n" +
		manText(manWhat) + ".SH OPTIONS\n" + manFlags(app.Flags) + ".SH COMMANDS\n" + list.String() + manExits +
		".SH FILES\n.TP\n~/.tilth/sessions/<id>/\n" + manText(manFiles) +
		".SH SEE ALSO\ngit(1), git\\-worktree(1), git\\-config(1), git\\-credential(1)\n"
	return pages
}

const manWhat = "Runs a coding agent over a list of tasks in a separate git worktree. Each task goes through a " +
	"worker, the project's validators and an independent reviewer. It ends as exactly one commit on the branch " +
	"session/<id>, or as a failure with a reason. Every prompt and verdict is recorded. Your own checkout is " +
	"never touched.\n\n" +
	"Name a session by its id or an unambiguous part of it. Without a name, a command uses the session of the " +
	"worktree it is typed in, else the newest session of the repository, else the newest of all.\n\n" +
	"Settings come from flags, TILTH_* variables and git config (tilth.*), in this order. git tilth config shows " +
	"them."

const manFiles = "One directory per session. TILTH_SESSIONS_DIR, TILTH_HOME or tilth.sessionsDir put it elsewhere."

var manExits = ".SH EXIT STATUS\n" + manText("0 success; 1 a task failed, or you answered no; 2 refused before "+
	"anything was changed; 3 git, the filesystem or the model endpoint failed; 4 the session is in use by another "+
	"process; 5 stopped at a cap, a usage limit or a full disk, resumable; 130 interrupted.")

func manHead(page, what, version, date string) string {
	return fmt.Sprintf(".TH %s 1 \"%s\" \"git\\-tilth %s\" \"Git Manual\"\n.SH NAME\n%s \\- %s\n",
		strings.ToUpper(roff(page)), date, roff(version), roff(page), roff(what))
}

func manSynopsis(line string) string { return ".SH SYNOPSIS\n" + manText(line) }

// placeholder matches the value in a flag's usage, in back quotes.
var placeholder = pattern.New("`([^`]+)`")

func manFlags(flags []cli.Flag) string {
	var b strings.Builder
	for _, f := range visibleFlags(flags) {
		var names []string
		for _, n := range f.Names() {
			names = append(names, dashes(n))
		}
		value := ""
		if f.TakesValue() {
			value = " \\fI" + roff(valueName(f)) + "\\fR"
		}
		fmt.Fprintf(&b, ".TP\n\\fB%s\\fR%s\n%s.\n", roff(strings.Join(names, ", ")), value,
			roff(strings.ReplaceAll(f.GetUsage(), "`", "")))
	}
	return b.String()
}

// manExamples returns the examples section of a command's page, or "".
func manExamples(examples []string) string {
	if len(examples) == 0 {
		return ""
	}
	var b strings.Builder
	for _, e := range examples {
		b.WriteString(roff(e) + "\n")
	}
	return ".SH EXAMPLES\n.nf\n" + b.String() + ".fi\n"
}

func dashes(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// manText formats paragraphs.
func manText(s string) string {
	var b strings.Builder
	for i, para := range strings.Split(strings.TrimSpace(s), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		b.WriteString(roff(strings.Join(strings.Fields(para), " ")) + "\n")
	}
	return b.String()
}

// roff escapes a text for the formatter.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "~", `\(ti`, "^", `\(ha`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
