package loop

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/judge"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// manifests decide, beside the lock files, which validators a project has and what they need.
var manifests = []string{"package.json", "go.mod", "Cargo.toml", "pyproject.toml"}

func decides(file string) bool {
	return judge.IsLockFile(file) || slices.Contains(manifests, path.Base(file))
}

// recheck asks for another preflight where a task changed what the validators need.
func (r *run) recheck(files []gitx.FileChange) {
	if slices.ContainsFunc(files, func(f gitx.FileChange) bool { return decides(f.Path) || decides(f.OldPath) }) {
		r.checked = false
	}
}

// preflight finds out whether the validators can run on what task i begins with, before anybody is paid for it. It is
// done once for the same validators, lock files and machine: what passed is noted in the checkpoint.
//
// A process that dies here has changed nothing but the place of the judge; the next one begins again.
func (r *run) preflight(ctx context.Context, i int) (err error) {
	if r.o.NoPreflight || r.checked {
		return nil
	}
	a := &attempt{run: r, index: i, task: r.tasks[i]}
	if a.base, err = a.beginsAt(ctx); err != nil {
		return err
	}
	of, err := a.preflightOf(ctx)
	if err != nil {
		return err
	}
	if r.checked = r.Checkpoint.Preflight == of; r.checked {
		return nil
	}
	defer a.shutPlace(&err)
	found, err := a.checkValidators(ctx)
	if err != nil {
		return err
	}
	if err := r.Record.Append(found); err != nil {
		return err
	}
	if !found.Passed {
		return preflightStop(found)
	}
	r.checked, r.Checkpoint.Preflight = true, of
	return r.Save()
}

// preflightOf names what a preflight depends on.
func (a *attempt) preflightOf(ctx context.Context) (string, error) {
	names, err := a.Git.List(ctx, gitx.InRepo(a.Common, "ls-tree", "-r", "-z", "--name-only", "--full-tree", a.base))
	if err != nil {
		return "", err
	}
	files, err := a.Git.FilesAt(ctx, a.Common, a.base,
		slices.DeleteFunc(names, func(f string) bool { return !decides(f) }))
	if err != nil {
		return "", err
	}
	host, _ := os.Hostname() // "" is a machine like others
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %q %q\n", host, a.o.Validators, a.Setup.Copy, a.Setup.Commands)
	for _, f := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(sum, "%q %x\n", f, sha256.Sum256(files[f]))
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// checkValidators lays out what the task begins with and starts each validator there.
func (a *attempt) checkValidators(ctx context.Context) (*record.Preflight, error) {
	wt, err := a.settledWorktree(ctx)
	if err != nil {
		return nil, err
	}
	j := &judged{wt: wt, dir: wt.Path}
	s := validator.Scene{Timeout: a.o.Limits.Validator, Config: a.o.ValidatorConfig,
		Setup: a.Setup.Commands}
	if a.o.From.History.LastStop == PreflightFailed { // the worktree may have been made before there was this setup
		if err := a.RunSetup(ctx, wt.Path); err != nil {
			s.Dir = wt.Path
			return setupFails(err, s)
		}
	}
	if a.place != nil {
		tree, err := a.Git.RevParse(ctx, a.Common, a.base+"^{tree}")
		if err != nil {
			return nil, err
		}
		laid, err := a.place.LayOut(ctx, a.base, tree)
		j.dir, s.Dir, s.Files = a.place.Dir, a.place.Dir, laid.Files
		if err != nil {
			return setupFails(err, s)
		}
	}
	vs, err := a.validators(ctx, j, s.Files)
	if err == nil {
		s.Tasks, err = a.tests(ctx)
	}
	if err != nil {
		return nil, err
	}
	s.Place = a.judgingPlace(ctx, j)
	s.Ignored = func(file string) bool {
		files, err := a.IgnoredInSource(ctx, file)
		return err == nil && len(files) > 0
	}
	return validator.Preflight(ctx, vs, s)
}

// setupFails is what a preflight finds where a setup command fails. Any other error comes back as it is.
func setupFails(err error, s validator.Scene) (*record.Preflight, error) {
	var command *validator.SetupError
	if !errors.As(err, &command) {
		return nil, err
	}
	first, _, _ := strings.Cut(command.Error(), "\n")
	why := strings.TrimSuffix(first, ":")
	if command.Output != "" {
		why += ": " + text.FailingLine(command.Output)
	}
	mend := cmp.Or(validator.SetupFor(s), "git config --unset-all tilth.setup")
	check := record.PreflightCheck{Name: "setup", From: "tilth.setup", Unable: why, Mend: mend}
	return &record.Preflight{Checks: []record.PreflightCheck{check}}, nil
}

// preflightStop ends the run, with the commands that mend what was found.
func preflightStop(found *record.Preflight) error {
	var why, mend []string
	for _, c := range found.Checks {
		if c.Unable == "" {
			continue
		}
		why = append(why, c.Name+" cannot start: "+c.Unable)
		if c.Mend != "" && !slices.Contains(mend, c.Mend) {
			mend = append(mend, c.Mend)
		}
	}
	return Stop{Reason: PreflightFailed, Detail: strings.Join(why, "; "), Hint: strings.Join(mend, " && ")}
}
