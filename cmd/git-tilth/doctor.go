package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/seed"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/view"
)

func (p *process) doctorCommand() *cli.Command {
	return p.declare(traits{wish: "begin", rare: true}, &cli.Command{
		Name:  "doctor",
		Usage: "look whether all is well: settings, git, sandbox, endpoint, disk, tests, hooks, sessions",
		Description: "Tries what a run tries before a model is paid, on the commit that is checked out. " +
			"Each finding is followed\nby the command that mends it. --fix runs those that can lose nothing: " +
			"a\nteardown or fork that was begun is cleared, entries and merged branches of sessions that are gone go.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "fix", Usage: "mend what can be mended without losing anything"},
			&cli.BoolFlag{Name: "all", Usage: "look at the sessions of all repositories"},
			&cli.BoolFlag{Name: "json", Usage: "print a JSON object"},
		},
		Action: p.in(func(ctx *cli.Context, w *repoContext) error {
			d := &doctor{repoContext: w, answers: map[string]check{}, all: ctx.Bool("all")}
			d.examine()
			if err := p.ctx.Err(); err != nil {
				return err // what a signal kept from being read is no finding
			}
			if ctx.Bool("fix") {
				d.fix()
			}
			return d.report(ctx.Bool("json"))
		}),
	})
}

// What a check came to.
const (
	well    = "ok"
	note    = "note" // worth knowing, and as it is set
	finding = "finding"
	mended  = "mended"
)

// check is one thing that doctor looked at.
type check struct {
	Name    string   `json:"name"`
	Also    []string `json:"also,omitempty"` // roles of which it is true as well
	Session string   `json:"session,omitempty"`
	Status  string   `json:"status"`
	Detail  string   `json:"detail"`
	Command string   `json:"command,omitempty"` // what mends a finding
	Safe    bool     `json:"safe,omitempty"`    // --fix mends it
	ailment lifecycle.Finding
}

type doctor struct {
	*repoContext
	checks  []check
	answers map[string]check // what an endpoint or a program answered
	all     bool             // sessions of other repositories too
}

func (d *doctor) add(name, status, command, format string, args ...any) {
	d.checks = append(d.checks, check{Name: name, Status: status, Command: command,
		Detail: fmt.Sprintf(format, args...)})
}

func (d *doctor) examine() {
	d.add("settings", well, "", "%d of %d are set", len(d.settings()), len(d.config.All()))
	version, supported := d.git.Version(d.p.ctx, 2, 36)
	if supported {
		d.add("git", well, "", "%s", version)
	} else {
		d.add("git", finding, "install git 2.36 or newer", "git %s is too old", cmp.Or(version, "(unknown)"))
	}
	state, system := d.sandboxState()
	d.checks = append(d.checks, state)
	if state.Status != finding && d.config.Text("tilth.sandbox") != "off" && system.Err == nil {
		if has, err := sandbox.Spaces(); err != nil {
			d.add("namespaces", note, "", "none: %s; docs/security.md has what is open without", err)
		} else {
			d.add("namespaces", well, "", "%s", strings.Join(has, ", "))
		}
	}
	for _, role := range []config.Role{config.Worker, config.Evaluator, config.Prep} {
		d.examineRole(role)
	}
	d.sayOnce()
	d.examineDisk()
	d.examineNight()
	d.examineSessions()
}

// sayOnce leaves of what is the matter with roles each thing once.
func (d *doctor) sayOnce() {
	var checks []check
	for _, c := range d.checks {
		i := slices.IndexFunc(checks, func(said check) bool { return said.Detail == c.Detail })
		if i < 0 || c.Status == well {
			checks = append(checks, c)
			continue
		}
		checks[i].Also = append(checks[i].Also, c.Name)
	}
	d.checks = checks
}

// examineNight tries on the commit that is checked out what a run tries before a model is paid. Nothing of it stays.
func (d *doctor) examineNight() {
	if !d.inRepo || d.p.dryRun {
		return
	}
	base, err := d.git.RevParse(d.p.ctx, d.loc.GitDir, "HEAD^{commit}")
	if err != nil {
		d.add("repository", finding, d.firstCommit(), "the repository has no commit to begin at")
		return
	}
	found, err := d.tryNight(base)
	if err != nil {
		_, msg, hint := d.p.exitFor(err)
		d.add("preflight", finding, cmp.Or(hint, noCommand), "%s", msg)
		return
	}
	for _, c := range found.Checks {
		if says := c.Finding(); says != "" && c.Fails != "" {
			d.add("preflight", finding, "git tilth run --known-failures tasks.md", "%s", says)
		} else if says != "" {
			d.add("preflight", finding, c.Mend, "%s", says)
		}
	}
	if found.Passed {
		d.add("preflight", well, "", "%s", strings.TrimPrefix(view.PreflightLine(found), "preflight: "))
	}
}

func (d *doctor) tryNight(base string) (*record.Preflight, error) {
	o, err := d.judging(loop.Options{})
	if err != nil {
		return nil, err
	}
	o.Ready = nil // who works was asked already
	dir, remove, err := proc.TempDir("doctor")
	if err != nil {
		return nil, err
	}
	defer remove()
	n := lifecycle.New{Store: session.Store{Root: filepath.Join(dir, "sessions")}, Location: d.loc, Base: base}
	draft, err := lifecycle.Draft(d.deps(nil), n)
	if err != nil {
		return nil, err
	}
	draft.Tell = d.tell
	what := loop.Ahead{Base: base, Tasks: seed.Sentence("What is to be done").Tasks}
	found, err := loop.LookAhead(d.p.ctx, draft, o, what)
	return found, errors.Join(err, lifecycle.Discard(draft))
}

// settings are those that are not at their default, with what takes the place of some that are not set.
func (d *doctor) settings() (rows []configRow) {
	for _, v := range d.config.All() {
		if v.Origin != "default" {
			rows = append(rows, d.configRow(v))
		}
	}
	return rows
}

func (d *doctor) examineDisk() {
	root := d.store.Root
	for _, err := os.Stat(root); err != nil && filepath.Dir(root) != root; _, err = os.Stat(root) {
		root = filepath.Dir(root)
	}
	if fi, err := os.Stat(root); err != nil || !fi.IsDir() || unix.Access(root, unix.W_OK) != nil {
		d.add("sessions", finding, anyRoot(), "sessions cannot be kept in %s: %s cannot be written", d.store.Root, root)
	}
	least, enough := d.config.Count("tilth.minFree"), []string{}
	for _, dir := range []string{root, d.loc.CommonDir, os.TempDir()} {
		free, known := loop.DiskFree(dir)
		switch {
		case dir == "" || !known:
		case free < least:
			d.add("disk", finding, "free some room, or lower tilth.minFree",
				"%d MB left on the disk of %s, tilth.minFree is %d MB", free>>20, dir, least>>20)
		default:
			left := fmt.Sprintf("%d MB left on the disk of ", free>>20)
			if n := len(enough); n > 0 && strings.HasPrefix(enough[n-1], left) {
				enough[n-1] += ", " + dir
			} else {
				enough = append(enough, left+dir)
			}
		}
	}
	if len(enough) > 0 {
		d.add("disk", well, "", "%s", strings.Join(enough, "; "))
	}
}

func (d *doctor) examineSessions() {
	ids, err := d.store.IDs()
	if err != nil {
		d.add("sessions", finding, "ls -ld "+text.ShellQuote(d.store.Root), "%s", err)
	}
	n, of := 0, " of this repository"
	if d.all || !d.inRepo {
		of = ""
	}
	for _, id := range ids {
		s, err := d.store.Find(id)
		if err != nil {
			continue
		}
		if belongs, known := d.belongs(s); of == "" || belongs || !known {
			n++
			d.addAilments(lifecycle.Check(d.p.ctx, d.deps(nil), s))
		}
	}
	d.add("sessions", well, "", "%s%s in %s", text.Plural(n, "session"), of, d.store.Root)
	d.addAilments(lifecycle.HalfForks(d.store))
	if !d.inRepo {
		return
	}
	orphans, err := lifecycle.Orphans(d.p.ctx, d.git, d.store, d.loc.CommonDir)
	if err != nil {
		d.add("repository", finding, "git worktree list", "%s", err)
	}
	d.addAilments(orphans)
}

func (d *doctor) addAilments(found []lifecycle.Finding) {
	for _, a := range found {
		d.checks = append(d.checks, check{Name: "session", Session: a.Session, Status: finding, Detail: a.What,
			Command: a.Command, Safe: a.Mend != nil, ailment: a})
	}
}

// fix mends what is safe to mend; a dry run leaves it at what the report says.
func (d *doctor) fix() {
	for i, c := range d.checks {
		if !c.Safe || d.p.dryRun {
			continue
		}
		if err := c.ailment.Mend(d.p.ctx); err != nil {
			d.checks[i].Detail += "; mending it failed: " + err.Error()
		} else {
			d.checks[i].Status = mended
		}
	}
}

func (d *doctor) report(asJSON bool) error {
	findings, safe := 0, 0
	for _, c := range d.checks {
		if c.Status == finding {
			findings++
			if c.Safe {
				safe++
			}
		}
	}
	if asJSON {
		all := map[string]any{"ok": findings == 0, "checks": d.checks, "settings": d.settings()}
		if err := d.p.printJSON(all); err != nil {
			return err
		}
	} else {
		d.print()
	}
	if findings == 0 {
		return nil
	}
	err := &exitError{code: exitNo, msg: text.Plural(findings, "finding")}
	if safe > 0 {
		err.hint = fmt.Sprintf("git tilth doctor --fix mends %d of them", safe)
	}
	return err
}

func (d *doctor) print() {
	for i, c := range d.checks {
		about := strings.TrimSpace(strings.Join(append([]string{c.Name}, c.Also...), ", ") + " " + c.Session)
		d.p.printf("%-7s  %s: %s\n", c.Status, about, text.Visible(text.OneLine(c.Detail)))
		again := i+1 < len(d.checks) && d.checks[i+1].Command == c.Command // the next one is mended by the same
		if c.Status == finding && !again {
			for line := range strings.SplitSeq(c.Command, "\n") {
				d.p.printf("         %s\n", text.Visible(line))
			}
		}
		if c.Name == "settings" {
			for _, r := range d.settings() {
				d.p.printf("         %s = %s (%s)\n", r.Name, text.Visible(text.OneLine(fmt.Sprint(r.Value))), r.Origin)
			}
		}
	}
}
