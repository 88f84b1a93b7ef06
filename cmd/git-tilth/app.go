package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/proc"
)

// run parses a command line and runs its command.
func (p *process) run(args []string) error {
	return p.app().RunContext(p.ctx, p.undeprecate(args))
}

func (p *process) app() *cli.App {
	cli.VersionFlag = &cli.BoolFlag{Name: "version", Usage: "print the version", DisableDefaultText: true}
	cli.VersionPrinter = func(*cli.Context) { p.printf("git-tilth version %s\n", version) }
	cli.HelpPrinter = func(out io.Writer, templ string, data any) {
		custom := map[string]any{}
		// Of a command's own help the library would not count the tabs.
		if _, all := data.(*cli.App); all && p.terminal(false).Width > 0 {
			custom["wrapAt"] = func() int { return p.terminal(false).Width }
		}
		cli.HelpPrinterCustom(out, templ, data, custom)
	}
	app := &cli.App{
		Name:            "git tilth",
		HelpName:        "git tilth",
		Usage:           "run a coding agent unattended over a list of tasks, and lose nothing",
		UsageText:       "git tilth [-v] [-n] <command> [options] [arguments]",
		Version:         version,
		HideHelpCommand: true,
		Writer:          p.stdout,
		ErrWriter:       io.Discard, // errors are reported in one place, exitCode
		Flags:           p.globalFlags(),
		Commands:        p.commands(),
		ExitErrHandler:  func(*cli.Context, error) {},
		OnUsageError:    usageError,
		Action: func(c *cli.Context) error {
			name, help := c.Args().First(), c.Args().First() == "help"
			if help {
				name = c.Args().Get(1)
			}
			switch {
			case name == "":
				return cli.ShowAppHelp(c)
			case help && c.App.Command(name) != nil:
				return cli.ShowCommandHelp(c, name)
			}
			return refuse("git tilth -h", "unknown command %q%s", name, suggest(name, p.commands()))
		},
	}
	p.finishCommands(app.Commands)
	return app
}

// commands is the table of what git tilth can do; each is in a file of its own.
func (p *process) commands() []*cli.Command {
	return slices.Concat([]*cli.Command{
		p.prepCommand(), p.seedCommand(), p.planCommand(), p.runCommand(), p.resumeCommand(), p.stopCommand(),
	}, p.markCommands(), []*cli.Command{
		p.rewindCommand(), p.undoCommand(), p.forkCommand(),
		p.reviewCommand(), p.diffCommand(), p.takeCommand(), p.prCommand(), p.cleanseCommand(), p.resetCommand(),
		p.listCommand(), p.showCommand(), p.logCommand(), p.visualizeCommand(), p.exportCommand(),
	}, p.fleetCommands(), []*cli.Command{
		p.workCommand(), p.configCommand(), p.doctorCommand(),
		p.verifyCommand(), p.replayCommand(), p.demoCommand(), p.manCommand(), p.completeCommand(),
	})
}

func (p *process) globalFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, DisableDefaultText: true,
			Usage: "print each git command as it runs, with its time"},
		&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, DisableDefaultText: true,
			Usage: "print the plan and the git commands; change nothing"},
	}
}

// finishCommands gives every command what all of them have: the global flags in its own place too, usage errors that
// are errors, and a refusal of flags after an argument, which the library would ignore without a word.
func (p *process) finishCommands(cmds []*cli.Command) {
	for _, c := range cmds {
		c.OnUsageError = usageError
		c.HideHelpCommand = true
		p.finishCommands(c.Subcommands)
		if c.Action == nil || c.SkipFlagParsing {
			continue
		}
		c.Flags = append(c.Flags, p.globalFlags()...)
		for _, f := range c.Flags {
			if b, ok := f.(*cli.BoolFlag); ok {
				b.DisableDefaultText = true
			}
		}
		action, maxArgs := c.Action, mostArgs(c.ArgsUsage)
		c.Action = func(ctx *cli.Context) error {
			p.verbose = p.verbose || anyBool(ctx, "verbose")
			p.dryRun = p.dryRun || anyBool(ctx, "dry-run")
			if err := checkArgs(ctx, maxArgs); err != nil {
				return err
			}
			if branch := p.getenv(lifecycle.CommittingVar); branch != "" && startsWork[ctx.Command.Name] {
				p.warnf("git-tilth: %s does nothing in a hook of the commits on %s\n", commandName(ctx), branch)
				return nil
			}
			p.changes = !onlyLooks[ctx.Command.Name]
			p.runs = slices.Contains([]string{"run", "resume", "work"}, ctx.Command.Name) && !p.dryRun
			if p.changes {
				proc.ForgetEnv(proc.IsKey)
			}
			return action(ctx)
		}
	}
}

// mostArgs is how many arguments a command takes, by the line that tells people.
func mostArgs(usage string) int {
	if strings.Contains(usage, "...") {
		return math.MaxInt
	}
	return strings.Count(usage, "<")
}

// startsWork are the commands that a commit hook of the user may run. The same hook runs on the commits that those
// commands make: they must neither start themselves again without end nor, refused, keep every task from its commit.
var startsWork = map[string]bool{"prep-feature": true, "run": true, "resume": true, "reset": true, "done": true,
	"rewind": true, "undo": true}

// flagsFirst puts flags with their values before the other arguments.
func flagsFirst(known []cli.Flag, args []string) []string {
	var flags, rest []string
	for i := 0; i < len(args); i++ {
		if len(args[i]) < 2 || args[i][0] != '-' {
			rest = append(rest, args[i])
			continue
		}
		flags = append(flags, args[i])
		if takesValue(known, args[i]) && i+1 < len(args) {
			i++
			flags = append(flags, args[i])
		}
	}
	return append(flags, rest...)
}

// anyBool looks for a flag in the command and in what it was called through: git tilth -v run, git tilth run -v.
func anyBool(ctx *cli.Context, name string) bool {
	for _, c := range ctx.Lineage() {
		if c.Bool(name) {
			return true
		}
	}
	return false
}

// checkArgs refuses flags after an argument, arguments that nobody asked for, empty names, and that one is missing.
func checkArgs(ctx *cli.Context, most int) error {
	args := ctx.Args().Slice()
	name := commandName(ctx)
	for i, a := range args {
		if a == "" {
			// A script's unset variable must not mean "the newest".
			return refuse(name+" -h", "an argument is empty")
		}
		if len(a) > 1 && a[0] == '-' && i > 0 {
			return refuse(name+" "+strings.Join(flagsFirst(ctx.Command.Flags, args), " "),
				"%s stands after the argument %q; flags come first", a, args[i-1])
		}
		if len(a) > 1 && a[0] == '-' {
			return refuse(name+" -h", "%q is a flag, not an argument", a)
		}
	}
	for _, place := range []string{"from", "base", "onto", "remote"} {
		if ctx.IsSet(place) && ctx.String(place) == "" { // nor "the usual one"
			return refuse(name+" -h", "--%s is empty", place)
		}
	}
	if len(args) > most {
		return refuse(name+" -h", "unexpected argument %q", args[most])
	}
	if needed, _, ok := strings.Cut(strings.TrimPrefix(ctx.Command.ArgsUsage, "<"), ">"); ok && len(args) == 0 &&
		ctx.Command.ArgsUsage[0] == '<' {
		return refuse(name+" "+ctx.Command.ArgsUsage, "%s needs a %s", ctx.Command.Name, needed)
	}
	return nil
}

func usageError(ctx *cli.Context, err error, _ bool) error {
	return refuse(commandName(ctx)+" -h", "%s", strings.TrimSpace(err.Error()))
}

// commandName is the command as its user types it.
func commandName(ctx *cli.Context) string {
	var words []string
	for _, c := range ctx.Lineage() {
		if c.Command != nil && c.Command.Name != "" && c.Command.Name != "git tilth" {
			words = append([]string{c.Command.Name}, words...)
		}
	}
	return strings.Join(append([]string{"git tilth"}, words...), " ")
}

// elsewhere are the names that other tools have for a command.
var elsewhere = map[string]string{
	"status": "show", "info": "show", "ls": "list", "rm": "reset", "remove": "reset", "delete": "reset",
	"merge": "take", "continue": "resume", "start": "run", "init": "prep-feature", "rollback": "rewind",
}

// suggest finds the command that a mistyped name begins like.
func suggest(name string, cmds []*cli.Command) string {
	if other := elsewhere[name]; other != "" {
		return fmt.Sprintf("; did you mean %q?", other)
	}
	for n := len(name); n >= 2; n-- {
		for _, c := range cmds {
			if !c.Hidden && strings.HasPrefix(c.Name, name[:n]) {
				return fmt.Sprintf("; did you mean %q?", c.Name)
			}
		}
	}
	return ""
}

// verbs are the top-level flags of an earlier form of the command line and the commands that took their place.
var verbs = map[string]string{
	"--resume": "resume", "--reset": "reset", "--visualize": "visualize", "--prep-feature": "prep-feature",
}

// undeprecate turns a deprecated top-level flag into its verb. The flag may carry its value either way:
// --resume ID, --resume=ID.
func (p *process) undeprecate(args []string) []string {
	for i, a := range args[1:] {
		if !strings.HasPrefix(a, "-") {
			return args
		}
		flag, value, hasValue := strings.Cut(a, "=")
		verb, ok := verbs[flag]
		if !ok {
			continue
		}
		p.warnf("git-tilth: %s is deprecated; use: git tilth %s\n", flag, verb)
		rest := args[i+2:]
		if hasValue {
			rest = append(slices.Clone(rest), value)
		}
		// The old flag's value came first, other flags after it; the new order is flags first.
		if len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
			rest = append(slices.Clone(rest[1:]), rest[0])
		}
		return slices.Concat(args[:i+1], []string{verb}, rest)
	}
	return args
}

// capFlags are the flags of settings that bound a run.
func capFlags() []cli.Flag {
	var out []cli.Flag
	for _, s := range config.FlagSettings() {
		usage := s.Help + " (" + s.Name + ")"
		if s.Given != "" {
			out = append(out, &cli.BoolFlag{Name: s.Flag, Usage: strings.TrimPrefix(usage, s.Given+": ")})
			continue
		}
		out = append(out, &cli.StringFlag{Name: s.Flag, Usage: usage})
	}
	return out
}

// givenSettings are the settings given as flags.
func givenSettings(ctx *cli.Context) map[string]string {
	out := map[string]string{}
	for _, s := range config.FlagSettings() {
		switch {
		case s.Given == "" && ctx.IsSet(s.Flag):
			out[s.Flag] = ctx.String(s.Flag)
		case s.Given != "" && ctx.Bool(s.Flag):
			out[s.Flag] = s.Given
		}
	}
	return out
}
