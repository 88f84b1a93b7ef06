package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/text"
)

// run parses a command line and runs its command.
func (p *process) run(args []string) error {
	p.args = args
	app := p.app()
	line := commandLine{ForGit: diffName}
	args, err := line.Arrange(app, p.undeprecate(args))
	if err != nil {
		return err
	}
	p.gitFlags, p.gitPaths = line.GitFlags, line.GitPaths
	var unknown error
	app.CommandNotFound = func(_ *cli.Context, name string) { unknown = unknownCommand(name, app.Commands) }
	return errors.Join(app.RunContext(p.ctx, args), unknown)
}

func (p *process) app() *cli.App {
	cli.VersionFlag = &cli.BoolFlag{Name: "version", Usage: "print the version", DisableDefaultText: true}
	cli.VersionPrinter = func(*cli.Context) { p.printf("git-tilth version %s\n", version) }
	cli.HelpPrinter = func(out io.Writer, templ string, data any) {
		switch of := data.(type) { // output keeps its first write error
		case *cli.App:
			_ = p.printHelp(out, of.Commands, usual)
		case *cli.Command:
			_, _ = io.WriteString(out, helpText(of, of.HelpName, p.examples(of), p.helpColumns()))
		default:
			cli.HelpPrinterCustom(out, templ, data, nil)
		}
	}
	app := &cli.App{
		Name:            "git tilth",
		HelpName:        "git tilth",
		Usage:           "run a coding agent unattended over a list of tasks, and lose nothing",
		UsageText:       "git tilth [-v] [-n] <command> [options] [arguments]",
		Version:         version,
		HideHelpCommand: true,
		Writer:          p.stdout,
		ErrWriter:       io.Discard, // exitCode reports errors
		Flags:           append(p.globalFlags(), cli.HelpFlag),
		Commands:        p.commands(),
		ExitErrHandler:  func(*cli.Context, error) {},
		OnUsageError:    usageError,
		Action: func(c *cli.Context) error {
			if name := c.Args().First(); name != "" {
				return unknownCommand(name, c.App.Commands)
			}
			p.sayState()
			return p.printHelp(p.stdout, c.App.Commands, brief)
		},
	}
	p.finishCommands(app.Commands)
	return app
}

// commands returns the table of commands, in the order of the help. Each is declared in a separate file.
func (p *process) commands() []*cli.Command {
	p.traits = map[*cli.Command]traits{}
	return slices.Concat([]*cli.Command{
		p.runCommand(), p.prepCommand(), p.seedCommand(), p.demoCommand(), p.doctorCommand(),
		p.resumeCommand(), p.stopCommand(),
	}, p.markCommands(), []*cli.Command{
		p.planCommand(),
		p.reviewCommand(), p.diffCommand(), p.takeCommand(), p.cleanseCommand(),
		p.rewindCommand(), p.undoCommand(), p.forkCommand(), p.resetCommand(),
		p.prCommand(), p.addressCommand(), p.updateCommand(), p.workCommand(),
	}, p.fleetCommands(), []*cli.Command{
		p.listCommand(), p.logCommand(), p.showCommand(), p.visualizeCommand(), p.verifyCommand(),
		p.configCommand(), p.helpCommand(), p.manCommand(), p.completeCommand(),
	})
}

// traits are the properties of a command beyond its flags and arguments.
type traits struct {
	wish string // heading in the help; "" hides the command
	rare bool   // listed only by help --all
	// looks: the command changes neither sessions nor the repository, and may be called from inside a run.
	looks bool
	// starts: the command starts agents or runs a worker's code; these processes end if git-tilth is killed.
	starts bool
	// hooked: in a commit hook that git-tilth runs, the command prints a note and does nothing. Otherwise it would
	// start itself again, or fail the hook and block every commit.
	hooked bool
	// ends: the exit code reports the end of a run.
	ends   bool
	plans  bool // the command looks, but -n prints its plan; -h of other commands that look does not list -n
	counts bool // -n takes a number, as in git log
}

// declare stores the traits of a command.
func (p *process) declare(is traits, c *cli.Command) *cli.Command {
	p.traits[c] = is
	return c
}

func (p *process) globalFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, DisableDefaultText: true,
			Usage: "print each git command as it runs, with its time"},
		&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, DisableDefaultText: true,
			Usage: "print the plan and the git commands; change nothing"},
	}
}

// finishCommands gives every command the global flags, usage errors, and checks of its arguments and the environment.
func (p *process) finishCommands(cmds []*cli.Command) {
	for _, c := range cmds {
		c.OnUsageError = usageError
		c.HideHelpCommand = true
		p.finishCommands(c.Subcommands)
		if c.Action == nil || c.SkipFlagParsing {
			continue
		}
		action, maxArgs, is := c.Action, mostArgs(c.ArgsUsage), p.traits[c]
		for _, f := range p.globalFlags() {
			if dry, flag := f.(*cli.BoolFlag); flag && dry.Name == "dry-run" {
				if dry.Hidden = is.looks && !is.plans; is.counts {
					dry.Aliases = nil
				}
			}
			c.Flags = append(c.Flags, f)
		}
		for _, f := range c.Flags {
			if b, ok := f.(*cli.BoolFlag); ok {
				b.DisableDefaultText = true
			}
		}
		c.Action = func(ctx *cli.Context) error {
			p.verbose = p.verbose || anyBool(ctx, "verbose")
			p.dryRun = p.dryRun || anyBool(ctx, "dry-run")
			p.stdout.json = anyBool(ctx, "json")
			if err := checkArgs(ctx, maxArgs); err != nil {
				return err
			}
			if branch := p.getenv(lifecycle.CommittingVar); branch != "" && is.hooked {
				p.warnf("git-tilth: %s skipped: a commit hook on %s called it\n", commandName(ctx), branch)
				return nil
			}
			p.changes, p.runs = !is.looks, is.ends && !p.dryRun
			if err := p.checkVariables(ctx.Command); err != nil {
				return err
			}
			if is.starts && !p.dryRun {
				defer proc.Keep()()
			}
			return action(ctx)
		}
	}
}

// mostArgs returns the number of arguments of a command, by its usage line.
func mostArgs(usage string) int {
	if strings.Contains(usage, "...") {
		return math.MaxInt
	}
	return strings.Count(usage, "<")
}

// anyBool looks for a flag in the command and its parents, because git tilth -v run and git tilth run -v mean the
// same.
func anyBool(ctx *cli.Context, name string) bool {
	for _, c := range ctx.Lineage() {
		if c.Bool(name) {
			return true
		}
	}
	return false
}

// checkArgs refuses unexpected, empty and missing arguments.
func checkArgs(ctx *cli.Context, most int) error {
	args := ctx.Args().Slice()
	name := commandName(ctx)
	if slices.ContainsFunc(args, func(arg string) bool { return strings.TrimSpace(arg) == "" }) {
		// A script's unset variable must not select the newest session.
		return refuse(name+" -h", "an argument is empty")
	}
	for _, place := range []string{"from", "base", "onto", "remote"} {
		if ctx.IsSet(place) && ctx.String(place) == "" { // an empty value must not select the default
			return refuse(name+" -h", "--%s is empty", place)
		}
	}
	if len(args) > most && ctx.Command.Name == "run" {
		return refuse(name+" "+text.ShellQuote(strings.Join(args, " "))+"\n"+name+" -h",
			"unexpected argument %q; quote a sentence", args[most])
	}
	if len(args) > most {
		return refuse(name+" -h", "unexpected argument %q", args[most])
	}
	if needed, _, ok := strings.Cut(strings.TrimPrefix(ctx.Command.ArgsUsage, "<"), ">"); ok && len(args) == 0 &&
		ctx.Command.ArgsUsage[0] == '<' {
		return refuse(name+" -h", "%s needs a %s", ctx.Command.Name, needed)
	}
	return nil
}

func usageError(ctx *cli.Context, err error, _ bool) error {
	says := oneDash().ReplaceAllString(strings.TrimSpace(err.Error()), "for flag --$1")
	return refuse(commandName(ctx)+" -h", "%s", strings.TrimSuffix(says, ": parse error"))
}

// oneDash matches a flag in an error of Go's flag package, which writes flags with one dash.
var oneDash = pattern.New(`for flag -([a-z][a-z-]+)`)

// commandName returns the command as the user types it.
func commandName(ctx *cli.Context) string {
	var words []string
	for _, c := range ctx.Lineage() {
		if c.Command != nil && c.Command.Name != "" && c.Command.Name != "git tilth" {
			words = append([]string{c.Command.Name}, words...)
		}
	}
	return strings.Join(append([]string{"git tilth"}, words...), " ")
}

// checkVariables warns about variables that look like settings but are not. For a misspelled setting, it refuses a
// command that starts work, because the run would use other settings than intended.
func (p *process) checkVariables(c *cli.Command) error {
	begins := p.runs || c.Name == "prep-feature"
	for _, v := range config.UnknownVariables(p.environ) {
		msg := v.Name + " is not a setting"
		if v.Nearest != "" {
			msg += "; did you mean " + v.Nearest + "?"
		}
		if begins && v.Nearest != "" && v.Slips <= 2 {
			return refuse(fmt.Sprintf("export %s=\"$%s\"; unset %[2]s", v.Nearest, v.Name), "%s", msg)
		}
		if !c.Hidden {
			p.warnf("git-tilth: %s\n", msg)
		}
	}
	return nil
}

// verbs maps the top-level flags of an earlier command line to the commands that replaced them.
var verbs = map[string]string{
	"--resume": "resume", "--reset": "reset", "--visualize": "visualize", "--prep-feature": "prep-feature",
}

// undeprecate replaces a deprecated top-level flag by its command. The flag may have its value after a space or a =:
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
		return slices.Concat(args[:i+1], []string{verb}, rest)
	}
	return args
}

// settingFlags returns the flags of settings for an import or for a run.
func settingFlags(imports bool) []cli.Flag {
	var out []cli.Flag
	for s := range config.FlagSettings {
		if s.Imports != imports {
			continue
		}
		usage := s.Help + " (" + s.Name + ")"
		if s.Given != "" {
			given, _, _ := strings.Cut(strings.TrimPrefix(s.Help, s.Given+": "), "; ") // one value only
			out = append(out, &cli.BoolFlag{Name: s.Flag, Usage: given + " (" + s.Name + ")"})
			continue
		}
		flag := &cli.StringFlag{Name: s.Flag, Usage: usage}
		if s.Short != "" {
			flag.Aliases = []string{s.Short}
		}
		out = append(out, flag)
	}
	return out
}

// givenSettings returns the settings given as flags.
func givenSettings(ctx *cli.Context) map[string]string {
	out := map[string]string{}
	for s := range config.FlagSettings {
		switch {
		case s.Given == "" && ctx.IsSet(s.Flag):
			out[s.Flag] = ctx.String(s.Flag)
		case s.Given != "" && ctx.Bool(s.Flag):
			out[s.Flag] = s.Given
		}
	}
	if ctx.Bool("wait") {
		out["no-wait"] = "true"
	}
	return out
}
