package judge

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/project"
)

// theSetup is the name of setup's files among the kept ones.
const theSetup = ""

// kept are files that stay in the checkout although no tree has them, with their stamps.
type kept struct {
	roots  map[string]bool
	stamps map[string]stamp
	locks  string // the lock files for which it was made
	tree   string // tree of the setup, "" for any tree
}

// volatile are caches that tools keep among installed dependencies. They do not count as a setup, because tools make
// them again.
var volatile = []string{".cache", ".vite", ".vitest"}

// locks lists the files that decide the dependencies, with the ids of their contents: setup runs again after a change.
func (p *Checkout) locks() string {
	if p.o.Seed != "" {
		return p.o.Seed
	}
	var b strings.Builder
	for _, e := range p.entries {
		if project.IsLock(e.Path) || e.Mode == gitlink || project.IsUnlocked(e.Path, p.Has) {
			b.WriteString(hex.EncodeToString([]byte(e.OID)) + " " + e.Path + "\n")
		}
	}
	return b.String()
}

// furnish checks out tree, and runs setup if it has not run for these lock files. Setup runs code of the tree (install
// scripts, a Makefile), so its result in one attempt's tree must not serve another attempt. If the lock files are the
// commit's, setup runs in the commit's tree instead.
func (p *Checkout) furnish(ctx context.Context, commit, tree string) error {
	if err := p.dropSetup(ctx, commit, tree); err != nil {
		return err
	}
	if err := p.update(ctx, tree); err != nil {
		return err
	}
	locks := p.locks()
	if k := p.kept[theSetup]; k != nil && k.locks == locks {
		return nil
	}
	delete(p.kept, theSetup)
	accepted, err := p.o.Git.RevParse(ctx, p.o.Common, cmp.Or(p.o.Seed, commit)+"^{tree}")
	if err != nil {
		return err
	}
	if accepted == tree {
		return p.setUp(ctx, commit, tree, "")
	}
	if err := p.update(ctx, accepted); err != nil {
		return err
	}
	if p.locks() == locks {
		var failed *SetupError
		err = p.setUp(ctx, commit, accepted, "")
		if errors.As(err, &failed) && p.o.Seed == "" { // the task may be to fix the setup
			err = errors.Join(p.begin(), p.writeRepo(commit))
		}
		if err != nil {
			return err
		}
	}
	if err := p.update(ctx, tree); err != nil || p.kept[theSetup] != nil {
		return err
	}
	return p.setUp(ctx, commit, tree, tree)
}

// dropSetup removes setup's files if they were made in a tree that is neither the commit's nor this one.
func (p *Checkout) dropSetup(ctx context.Context, commit, tree string) error {
	k := p.kept[theSetup]
	if k == nil || k.tree == "" || k.tree == tree {
		return nil
	}
	accepted, err := p.o.Git.RevParse(ctx, p.o.Common, commit+"^{tree}")
	if err != nil {
		return err
	}
	if k.tree == accepted {
		k.tree = ""
		return nil
	}
	return p.drop(theSetup)
}

// drop removes kept files.
func (p *Checkout) drop(name string) error {
	for root := range p.kept[name].roots {
		addAbove(p.stale, root)
		if p.Has(root) {
			continue // recheck removes untracked files of a new directory
		}
		if err := proc.RemoveAll(filepath.Join(p.Dir, root)); err != nil {
			return err
		}
	}
	delete(p.kept, name)
	return nil
}

// setUp runs the setup in the checked-out tree. The setup is valid only for the tree of.
func (p *Checkout) setUp(ctx context.Context, commit, tree, of string) error {
	if err := p.o.Setup(ctx, p.Dir); err != nil {
		// An incomplete setup does not count: the next judgement repeats it.
		p.forget()
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return &SetupError{err}
	}
	// Its changes to the tree itself are reverted.
	if err := p.writeRepo(commit); err != nil {
		return err
	}
	if err := p.update(ctx, tree); err != nil {
		return err
	}
	roots, err := p.untracked()
	if err != nil {
		return err
	}
	for _, e := range p.entries {
		if e.Mode == gitlink {
			roots = append(roots, e.Path) // a submodule that was checked out
		}
	}
	k, err := p.keep(roots)
	if err != nil {
		return err
	}
	k.locks, k.tree = p.locks(), of
	p.kept[theSetup] = k
	return nil
}

// untracked lists the untracked files, except Cargo's builds.
func (p *Checkout) untracked() ([]string, error) {
	var roots []string
	onDisk := project.OnDisk(p.Dir)
	for dir := range directories(p.entries) {
		names, err := os.ReadDir(filepath.Join(p.Dir, dir))
		if err != nil {
			return nil, err
		}
		for _, d := range names {
			name := path.Join(dir, d.Name())
			if name != ".git" && !p.Has(name) && !project.IsBuilt(name, onDisk) {
				roots = append(roots, name)
			}
		}
	}
	return roots, nil
}

// keep takes the stamps of everything at and below roots.
func (p *Checkout) keep(roots []string) (*kept, error) {
	k := &kept{roots: map[string]bool{}, stamps: map[string]stamp{}}
	for _, root := range roots {
		k.roots[root] = true
		err := filepath.WalkDir(filepath.Join(p.Dir, root), func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && slices.Contains(volatile, d.Name()) {
				if err := proc.RemoveAll(name); err != nil {
					return err
				}
				return fs.SkipDir
			}
			rel, err := filepath.Rel(p.Dir, name)
			if err != nil {
				return err
			}
			k.stamps[rel] = stamp{}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	// Stamps last: removing a cache changed its parent directory.
	for name := range k.stamps {
		var err error
		if k.stamps[name], err = p.take(name); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// checkKept drops changed kept files: setup runs again, and Cargo builds again.
func (p *Checkout) checkKept() error {
	for name, k := range p.kept {
		changed, err := p.changed(k.stamps, func(name string) bool { _, is := k.stamps[name]; return is })
		if err != nil {
			return err
		}
		if len(changed) == 0 {
			continue
		}
		if err := p.drop(name); err != nil {
			return err
		}
		if name != theSetup {
			continue
		}
		err = p.o.Repaired("files that tilth.setup installed in the judged checkout were changed", "set up again")
		if err != nil {
			return err
		}
	}
	return nil
}

// dropBuilds removes Cargo's builds of packages that the tree no longer has, because nothing would check them.
func (p *Checkout) dropBuilds() error {
	for name := range p.kept {
		if name == theSetup || project.IsBuilt(name, p.Has) {
			continue
		}
		if err := p.drop(name); err != nil {
			return err
		}
	}
	return nil
}

// builds lists the target directories of Cargo's packages.
func (p *Checkout) builds() (dirs []string) {
	for _, e := range p.entries {
		dir := path.Join(path.Dir(e.Path), "target")
		if path.Base(e.Path) == "Cargo.toml" && !p.Has(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// DropBuilds removes Cargo's builds. They serve later judgements only if the judgement that made them accepted.
func (p *Checkout) DropBuilds() error {
	for _, dir := range p.builds() {
		delete(p.kept, dir)
		addAbove(p.stale, dir)
		if err := proc.RemoveAll(filepath.Join(p.Dir, dir)); err != nil {
			return err
		}
	}
	return nil
}

// keepBuilds takes the stamps of Cargo's builds.
func (p *Checkout) keepBuilds() error {
	maps.DeleteFunc(p.kept, func(name string, _ *kept) bool { return name != theSetup })
	for _, dir := range p.builds() {
		if fi, err := os.Lstat(filepath.Join(p.Dir, dir)); err != nil || !fi.IsDir() {
			continue
		}
		k, err := p.keep([]string{dir})
		if errors.Is(err, fs.ErrNotExist) {
			continue // something that was left behind still tidies up; it is built again
		}
		if err != nil {
			return err
		}
		p.kept[dir] = k
	}
	return nil
}

// SetupError is a failed setup command in a judged tree. Its text is for the worker.
type SetupError struct{ Err error }

func (e *SetupError) Error() string { return e.Err.Error() }
func (e *SetupError) Unwrap() error { return e.Err }
