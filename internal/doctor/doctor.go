// Package doctor checks a repository's setup and sessions, and names a fix for each problem.
package doctor

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

// Doctor looks whether all is well where a command stands.
type Doctor struct {
	*equip.Kit
	Checks []equip.Check
	Dry    bool                                         // nothing is tried that makes something
	Of     func(*session.Session) (belongs, known bool) // whether one is of this repository; nil for all
	Hint   func(error) (msg, hint string)               // what is said of an error
	Trying func(what string)                            // hears of what takes long before it is tried; nil for nobody
}

func (d *Doctor) add(name, status, command, format string, args ...any) {
	d.Checks = append(d.Checks, equip.Check{Name: name, Status: status, Command: command,
		Detail: fmt.Sprintf(format, args...)})
}

// Check runs all checks; set is the number of settings that are set.
func (d *Doctor) Check(set int) {
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
			d.add("namespaces", equip.Note, "", "none: %s; docs/security.md has what is open without", err)
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
func (d *Doctor) sayOnce() {
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
func (d *Doctor) examineNight() {
	if d.Loc.CommonDir == "" || d.Dry {
		return
	}
	base, err := d.Git.RevParse(d.Ctx, d.Loc.GitDir, "HEAD^{commit}")
	if err != nil {
		d.add("repository", equip.Finding, d.FirstCommit(), "the repository has no commit to begin at")
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
			d.add("preflight", equip.Finding, "git tilth run --known-failures tasks.md", "%s", says)
		} else if says != "" {
			d.add("preflight", equip.Finding, c.Mend, "%s", says)
		}
	}
	if found.Passed {
		d.add("preflight", equip.Well, "", "%s", strings.TrimPrefix(view.PreflightLine(found), "preflight: "))
	}
}

func (d *Doctor) tryNight(base string) (*record.Preflight, error) {
	o, err := d.Judging(loop.Options{})
	if err != nil {
		return nil, err
	}
	o.Ready = nil // who works was asked already
	if d.Trying != nil {
		d.Trying("setup, validators and hooks, as a run does")
	}
	dir, remove, err := proc.TempDir("doctor")
	if err != nil {
		return nil, err
	}
	defer remove()
	n := lifecycle.New{Store: session.Store{Root: filepath.Join(dir, "sessions")}, Location: d.Loc, Base: base}
	draft, err := lifecycle.Draft(d.Deps(nil), n)
	if err != nil {
		return nil, err
	}
	draft.Tell = d.Tell
	what := loop.Ahead{Base: base, Tasks: seed.Sentence("What is to be done").Tasks}
	found, err := loop.LookAhead(d.Ctx, draft, o, what)
	return found, errors.Join(err, lifecycle.Discard(draft))
}

func (d *Doctor) examineDisk() {
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
		free, known := loop.DiskFree(dir)
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

func (d *Doctor) examineSessions() {
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
func (d *Doctor) Fix() {
	for i, c := range d.Checks {
		if !c.Safe || d.Dry {
			continue
		}
		if err := c.Mend(d.Ctx); err != nil {
			d.Checks[i].Detail += "; mending it failed: " + err.Error()
		} else {
			d.Checks[i].Status = equip.Mended
		}
	}
}
