package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/text"
)

// helpText returns the text of `git tilth <command> -h`: usage, description, options and examples, broken between
// words at the given number of columns. name is the command with its parents, such as git tilth seed edit.
func helpText(c *cli.Command, name string, examples []string, columns int) string {
	var b strings.Builder
	line := func(indent, s string) { b.WriteString(text.Hang(indent+s, columns, indent) + "\n") }
	options := " [<options>]"
	if len(c.Subcommands) > 0 {
		options = " <command>"
	}
	line("", strings.TrimRight("usage: "+name+options+" "+c.ArgsUsage, " "))
	b.WriteString("\n")
	line("", c.Usage)
	for para := range strings.SplitSeq(c.Description, "\n\n") {
		if para != "" {
			b.WriteString("\n")
			line("", strings.Join(strings.Fields(para), " "))
		}
	}
	if len(c.Subcommands) > 0 {
		b.WriteString("\ncommands:\n")
		for _, sub := range c.Subcommands {
			hang(&b, sub.Name, sub.Usage, columns)
		}
	}
	b.WriteString("\noptions:\n")
	for _, f := range visibleFlags(c.Flags) {
		usage := strings.ReplaceAll(f.GetUsage(), "`", "")
		if v := f.GetDefaultText(); v != "" && f.TakesValue() && !strings.Contains(usage, "default") {
			usage += " (default: " + strings.Trim(v, `"`) + ")"
		}
		hang(&b, flagNames(f), usage, columns)
	}
	if len(examples) > 0 {
		b.WriteString("\nexamples:\n")
		for _, e := range examples {
			b.WriteString("  " + e + "\n")
		}
	}
	return b.String()
}

// nameColumn is the width of the column with a flag's or subcommand's name in helpText.
const nameColumn = 26

// hang writes a name and its explanation in two columns. A name that is too long has a line to itself.
func hang(b *strings.Builder, name, usage string, columns int) {
	margin := strings.Repeat(" ", nameColumn)
	line := fmt.Sprintf("  %-*s%s", nameColumn-2, name, usage)
	if len(name) > nameColumn-4 {
		fmt.Fprintf(b, "  %s\n", name)
		line = margin + usage
	}
	b.WriteString(text.Hang(line, columns, margin) + "\n")
}

// flagNames returns a flag's names and the name of its value, such as "-j, --lanes N".
func flagNames(f cli.DocGenerationFlag) string {
	var short, long []string
	for _, n := range f.Names() {
		if len(n) == 1 {
			short = append(short, dashes(n))
		} else {
			long = append(long, dashes(n))
		}
	}
	names := strings.Join(append(short, long...), ", ")
	if f.TakesValue() {
		names += " " + valueName(f)
	}
	return names
}

// valueName returns the name of a flag's value: the word in back quotes in its usage, else value.
func valueName(f cli.DocGenerationFlag) string {
	if m := placeholder().FindStringSubmatch(f.GetUsage()); m != nil {
		return m[1]
	}
	return "value"
}
