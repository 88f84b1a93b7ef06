package main

import (
	"cmp"
	"context"
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
	"github.com/git-tilth/git-tilth/internal/view"
)

// checkup checks the setup of the current directory.
type checkup struct {
	*repoContext
	all  bool // the sessions of all repositories
	json bool
}

// found returns one check.
func found(name, status, command, format string, args ...any) record.Check {
	return record.Check{Name: name, Status: status, Command: command, Detail: fmt.Sprintf(format, args...)}
}

// checks returns the checks of doctor in their order.
func (d checkup) checks() []loop.Check {
	return []loop.Check{
		{Name: "git", Run: d.checkGit}, {Name: "sandbox", Run: d.checkSandbox}, {Name: "agents", Run: d.checkAgents},
		{Name: "disk", Run: d.checkDisk}, {Name: "preflight", Run: d.checkPreflight},
		{Name: "sessions", Run: d.checkSessions},
	}
}

func (d checkup) checkGit(ctx context.Context) ([]record.Check, error) {
	version, supported := d.Git.Version(ctx, 2, 36)
	if !supported {
		return []record.Check{found("git", record.CheckFinding, "install git 2.36 or newer", "git %s is too old",
			cmp.Or(version, "(unknown)"))}, nil
	}
	return []record.Check{found("git", record.CheckOK, "", "%s", version)}, nil
}

func (d checkup) checkSandbox(context.Context) ([]record.Check, error) {
	state, system := d.SandboxState()
	if state.Status == record.CheckFinding || d.Config.Text("tilth.sandbox") == "off" || system.Err != nil {
		return []record.Check{state}, nil
	}
	spaces := record.Check{Name: "namespaces", Status: record.CheckOK}
	has, err := sandbox.Spaces()
	if spaces.Detail = strings.Join(has, ", "); err != nil {
		spaces = found("namespaces", record.CheckNote, "", "none: %s; docs/security.md lists the gaps", err)
	}
	return []record.Check{state, spaces}, nil
}

// checkAgents checks the agents of the roles. A problem shared by several roles is one finding.
func (d checkup) checkAgents(context.Context) (checks []record.Check, err error) {
	answers := map[string]record.Check{}
	for _, role := range []config.Role{config.Worker, config.Evaluator, config.Prep} {
		c := d.CheckRole(role, answers)
		i := slices.IndexFunc(checks, func(said record.Check) bool { return said.Detail == c.Detail })
		if i < 0 || c.Status == record.CheckOK {
			checks = append(checks, c)
			continue
		}
		checks[i].Also = append(checks[i].Also, c.Name)
	}
	return checks, nil
}

// checkPreflight runs every check that a run makes before its first model call, on the current commit, and leaves
// nothing behind.
func (d checkup) checkPreflight(ctx context.Context) (checks []record.Check, err error) {
	if d.Loc.CommonDir == "" || d.p.dryRun {
		return nil, nil
	}
	base, err := d.Git.RevParse(ctx, d.Loc.GitDir, "HEAD^{commit}")
	if err != nil {
		return []record.Check{found("repository", record.CheckFinding, d.FirstCommit(),
			"the repository has no commit to start from")}, nil
	}
	var result *record.Preflight
	err = d.inDraft(base, func(draft *held.Handle, o loop.Options, what loop.Ahead) error {
		o.Ready = nil // checkAgents has checked the agents
		if isTerminal(d.p.stderr) && !d.json {
			o.Validating = d.trial()
		}
		result, err = loop.LookAhead(ctx, draft, o, what)
		return err
	})
	if err != nil {
		_, msg, hint := d.p.exitFor(err)
		return []record.Check{found("preflight", record.CheckFinding, cmp.Or(hint, equip.NoCommand), "%s", msg)}, nil
	}
	for _, c := range result.Checks {
		if c.IsFinding() {
			if c.Status == record.CheckFails {
				c.Command = cmp.Or(c.Command, "git tilth run --known-failures tasks.md")
			}
			checks = append(checks, found("preflight", record.CheckFinding, c.Command, "%s", c.Says()))
		}
	}
	if result.Passed {
		checks = append(checks, found("preflight", record.CheckOK, "", "%s",
			strings.TrimPrefix(view.PreflightLine(result), "preflight: ")))
		if slices.ContainsFunc(result.Checks, record.Check.Detected) {
			checks = append(checks, found("validators", record.CheckOK, "",
				"detected; other commands: git config --add tilth.validator 'test=make test'"))
		}
	}
	return checks, nil
}

// reportFlaky runs one test of the current commit alone, many times, and prints how often it failed.
func (d checkup) reportFlaky(test string) error {
	if d.p.dryRun {
		d.p.printf("would run %s alone 20 times on the current commit\n", text.Visible(test))
		return nil
	}
	base, err := d.Git.RevParse(d.Ctx, d.Loc.GitDir, "HEAD^{commit}")
	if err != nil {
		return refuse(d.FirstCommit(), "the repository has no commit to start from")
	}
	return d.inDraft(base, func(draft *held.Handle, o loop.Options, what loop.Ahead) error {
		rate, err := loop.Repeat(d.Ctx, draft, o, what, test)
		if err != nil {
			return err
		}
		if d.json {
			return d.p.printJSON(rate)
		}
		d.p.printf("%s failed %d of %d runs (%d %%)\n", text.Visible(rate.Test), rate.Failed, rate.Runs,
			100*rate.Failed/rate.Runs)
		if rate.Cause != "" {
			d.p.printf("last failure: %s\n", rate.Cause)
		}
		return nil
	})
}

// inDraft calls use with a draft of a session that begins at a commit, and leaves nothing behind.
func (d checkup) inDraft(base string, use func(*held.Handle, loop.Options, loop.Ahead) error) error {
	o, err := d.Judging(loop.Options{})
	if err != nil {
		return err
	}
	dir, remove, err := proc.TempDir()
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

func (d checkup) checkDisk(context.Context) (checks []record.Check, err error) {
	root := d.Store.Root
	for _, err := os.Stat(root); err != nil && filepath.Dir(root) != root; _, err = os.Stat(root) {
		root = filepath.Dir(root)
	}
	if fi, err := os.Stat(root); err != nil || !fi.IsDir() || unix.Access(root, unix.W_OK) != nil {
		checks = append(checks, found("sessions", record.CheckFinding, equip.AnyRoot(),
			"sessions cannot be kept in %s: %s cannot be written", d.Store.Root, root))
	}
	least, enough := d.Config.Count("tilth.minFree"), []string{}
	for _, dir := range []string{root, d.Loc.CommonDir, os.TempDir()} {
		free, known := proc.DiskFree(dir)
		switch {
		case dir == "" || !known:
		case free < least:
			checks = append(checks, found("disk", record.CheckFinding, "free some space, or lower tilth.minFree",
				"%d MB left on the disk of %s, tilth.minFree is %d MB", free>>20, dir, least>>20))
		default:
			enough = append(enough, fmt.Sprintf("%d MB left on the disk of %s", free>>20, dir))
		}
	}
	if len(enough) > 0 {
		checks = append(checks, found("disk", record.CheckOK, "", "%s", strings.Join(enough, "; ")))
	}
	return checks, nil
}

func (d checkup) checkSessions(ctx context.Context) (checks []record.Check, err error) {
	ids, err := d.Store.IDs()
	if err != nil {
		checks = append(checks, found("sessions", record.CheckFinding, "ls -ld "+text.ShellQuote(d.Store.Root), "%s",
			err))
	}
	ours, n, of := d.inRepo && !d.all, 0, ""
	if ours {
		of = " of this repository"
	}
	for _, id := range ids {
		s, err := d.Store.Find(id)
		if err != nil {
			continue
		}
		if ours {
			if belongs, known := d.belongs(s); known && !belongs {
				continue
			}
		}
		n++
		checks = append(checks, checkSession(ctx, d.Deps(nil), s)...)
	}
	checks = append(checks, found("sessions", record.CheckOK, "", "%s%s in %s", text.Plural(n, "session"), of,
		d.Store.Root))
	checks = append(checks, halfForks(d.Store)...)
	if d.Loc.CommonDir == "" {
		return checks, nil
	}
	left, err := orphans(ctx, d.Git, d.Store, d.Loc.CommonDir)
	if err != nil {
		left = []record.Check{found("repository", record.CheckFinding, "git worktree list", "%s", err)}
	}
	return append(checks, left...), nil
}
