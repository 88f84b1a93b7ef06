package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/equip"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/seed"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/validator"
	"github.com/git-tilth/git-tilth/internal/view"
)

// setupDoctor checks the setup of the current directory.
type setupDoctor struct {
	*equip.Kit
	Checks []equip.Check
	Dry    bool                                         // nothing is tried that makes something
	Of     func(*session.Session) (belongs, known bool) // whether one is of this repository; nil for all
	Hint   func(error) (msg, hint string)               // the message of an error
	Trying func(task, name string)                      // is called before each part of the preflight; may be nil
}

func (d *setupDoctor) add(name, status, command, format string, args ...any) {
	d.Checks = append(d.Checks, equip.Check{Name: name, Status: status, Command: command,
		Detail: fmt.Sprintf(format, args...)})
}

// Check runs all checks; set is the number of settings that are set.
func (d *setupDoctor) Check(set int) {
	d.add("settings", equip.Well, "", "%d of %d are set", set, len(d.Config.All()))
	version, supported := d.Git.Version(d.Ctx, 2, 36)
	if supported {
		d.add("git", equip.Well, "", "%s", version)
	} else {
		d.add("git", equip.Finding, "install git 2.36 or newer", "git %s is too old", cmp.Or(version, "(unknown)"))
	}
	state, system := d.SandboxState()
	d.Checks = append(d.Checks, state)
	if state.Status != equip.Finding && d.Config.Text("tilth.sandbox") != "off" && system.Err == nil {
		if has, err := sandbox.Spaces(); err != nil {
			d.add("namespaces", equip.Note, "", "none: %s; docs/security.md lists the gaps", err)
		} else {
			d.add("namespaces", equip.Well, "", "%s", strings.Join(has, ", "))
		}
	}
	answers := map[string]equip.Check{}
	for _, role := range []config.Role{config.Worker, config.Evaluator, config.Prep} {
		d.Checks = append(d.Checks, d.CheckRole(role, answers))
	}
	d.sayOnce()
	d.examineDisk()
	d.examineNight()
	d.examineSessions()
}

// sayOnce removes repeated findings about roles.
func (d *setupDoctor) sayOnce() {
	var checks []equip.Check
	for _, c := range d.Checks {
		i := slices.IndexFunc(checks, func(said equip.Check) bool { return said.Detail == c.Detail })
		if i < 0 || c.Status == equip.Well {
			checks = append(checks, c)
			continue
		}
		checks[i].Also = append(checks[i].Also, c.Name)
	}
	d.Checks = checks
}

// examineNight tries everything that a run tries before a model is paid, on the current commit, and leaves nothing
// behind.
func (d *setupDoctor) examineNight() {
	if d.Loc.CommonDir == "" || d.Dry {
		return
	}
	base, err := d.Git.RevParse(d.Ctx, d.Loc.GitDir, "HEAD^{commit}")
	if err != nil {
		d.add("repository", equip.Finding, d.FirstCommit(), "the repository has no commit to start from")
		return
	}
	found, err := d.tryNight(base)
	if err != nil {
		msg, hint := d.Hint(err)
		d.add("preflight", equip.Finding, cmp.Or(hint, equip.NoCommand), "%s", msg)
		return
	}
	for _, c := range found.Checks {
		if says := c.Finding(); says != "" && c.Fails != "" {
			d.add("preflight", equip.Finding, cmp.Or(c.Mend, "git tilth run --known-failures tasks.md"), "%s", says)
		} else if says != "" {
			d.add("preflight", equip.Finding, c.Mend, "%s", says)
		}
	}
	if found.Passed {
		d.add("preflight", equip.Well, "", "%s", strings.TrimPrefix(view.PreflightLine(found), "preflight: "))
		if slices.ContainsFunc(found.Checks, record.PreflightCheck.Detected) {
			d.add("validators", equip.Well, "",
				"detected; other commands: git config --add tilth.validator 'test=make test'")
		}
	}
}

func (d *setupDoctor) tryNight(base string) (found *record.Preflight, err error) {
	err = d.inDraft(base, func(draft *held.Handle, o loop.Options, what loop.Ahead) error {
		o.Ready, o.Validating = nil, d.Trying // the agents were checked already
		found, err = loop.LookAhead(d.Ctx, draft, o, what)
		return err
	})
	return found, err
}

// Repeat runs one test of the current commit alone, many times, and returns how often it failed.
func (d *setupDoctor) Repeat(test string) (rate validator.Rate, err error) {
	base, err := d.Git.RevParse(d.Ctx, d.Loc.GitDir, "HEAD^{commit}")
	if err != nil {
		return rate, held.Refuse(d.FirstCommit(), "the repository has no commit to start from")
	}
	err = d.inDraft(base, func(draft *held.Handle, o loop.Options, what loop.Ahead) error {
		if rate, err = loop.Repeat(d.Ctx, draft, o, what, test); errors.Is(err, validator.ErrNoTest) {
			return held.Refuse("git tilth config", "%s: %s", test, err)
		}
		return err
	})
	return rate, err
}

// inDraft calls use with a draft of a session that begins at a commit, and leaves nothing behind.
func (d *setupDoctor) inDraft(base string, use func(*held.Handle, loop.Options, loop.Ahead) error) error {
	o, err := d.Judging(loop.Options{})
	if err != nil {
		return err
	}
	dir, remove, err := proc.TempDir("doctor")
	if err != nil {
		return err
	}
	defer remove()
	n := lifecycle.New{Store: session.Store{Root: filepath.Join(dir, "sessions")}, Location: d.Loc, Base: base}
	draft, err := lifecycle.Draft(d.Ctx, d.Deps(nil), n)
	if err != nil {
		return err
	}
	draft.Tell = d.Tell
	err = use(draft, o, loop.Ahead{Base: base, Tasks: seed.Sentence("What is to be done").Tasks})
	return errors.Join(err, lifecycle.Discard(draft))
}

func (d *setupDoctor) examineDisk() {
	root := d.Store.Root
	for _, err := os.Stat(root); err != nil && filepath.Dir(root) != root; _, err = os.Stat(root) {
		root = filepath.Dir(root)
	}
	if fi, err := os.Stat(root); err != nil || !fi.IsDir() || unix.Access(root, unix.W_OK) != nil {
		d.add("sessions", equip.Finding, equip.AnyRoot(), "sessions cannot be kept in %s: %s cannot be written",
			d.Store.Root, root)
	}
	least, enough := d.Config.Count("tilth.minFree"), []string{}
	for _, dir := range []string{root, d.Loc.CommonDir, os.TempDir()} {
		free, known := proc.DiskFree(dir)
		switch {
		case dir == "" || !known:
		case free < least:
			d.add("disk", equip.Finding, "free some space, or lower tilth.minFree",
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
		d.add("disk", equip.Well, "", "%s", strings.Join(enough, "; "))
	}
}

func (d *setupDoctor) examineSessions() {
	ids, err := d.Store.IDs()
	if err != nil {
		d.add("sessions", equip.Finding, "ls -ld "+text.ShellQuote(d.Store.Root), "%s", err)
	}
	n, of := 0, " of this repository"
	if d.Of == nil {
		of = ""
	}
	for _, id := range ids {
		s, err := d.Store.Find(id)
		if err != nil {
			continue
		}
		if d.Of != nil {
			if belongs, known := d.Of(s); known && !belongs {
				continue
			}
		}
		n++
		d.Checks = append(d.Checks, checkSession(d.Ctx, d.Deps(nil), s)...)
	}
	d.add("sessions", equip.Well, "", "%s%s in %s", text.Plural(n, "session"), of, d.Store.Root)
	d.Checks = append(d.Checks, halfForks(d.Store)...)
	if d.Loc.CommonDir == "" {
		return
	}
	left, err := orphans(d.Ctx, d.Git, d.Store, d.Loc.CommonDir)
	if err != nil {
		d.add("repository", equip.Finding, "git worktree list", "%s", err)
	}
	d.Checks = append(d.Checks, left...)
}

// Fix applies the safe fixes, except in a dry run.
func (d *setupDoctor) Fix() {
	for i, c := range d.Checks {
		if !c.Safe || d.Dry {
			continue
		}
		if err := c.Mend(d.Ctx); err != nil {
			d.Checks[i].Detail += "; the fix failed: " + err.Error()
		} else {
			d.Checks[i].Status = equip.Mended
		}
	}
}
