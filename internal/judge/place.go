package judge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/proc"
)

// Options are the checkout's session, repository and setup.
type Options struct {
	Git    *gitx.Git
	Common string // the repository's common directory
	Branch string // the session's, without refs/heads/
	Sparse gitx.Sparse
	// Setup checks out submodules, copies the files of tilth.copy and runs the setup commands in a directory.
	Setup func(ctx context.Context, dir string) error
	// Seed is the commit whose dependencies setup installs for any tree; "" uses the tree's own.
	Seed string
	// Repaired is called for each repair, with texts for the record.
	Repaired func(what, done string) error
}

// Checkout is the directory where changes are judged. It belongs to one process and serves one judgement at a time.
type Checkout struct {
	Dir string

	o          Options
	top        *os.File // the directory itself, nil before the first layout
	silent     bool     // the ctimes of its files do not show all changes
	settings   []byte
	attributes []byte // the user's own
	tags       []byte
	hashSize   int

	tree    string
	index   []byte // git's index file; nil: no tree is checked out
	entries []entry
	files   map[string]stamp // stamps of the entries
	dirs    map[string]stamp // stamps of directories with entries
	stale   map[string]bool  // directories that need a new stamp

	laid Laid
	kept map[string]*kept // Cargo's target directories, and the setup's files as theSetup
}

// Laid is a checked-out tree.
type Laid struct {
	Files   []string // paths, sorted as git sorts
	entries []entry
}

// Blob returns the object id of a file, or "". A link may have the id of the file that it replaces.
func (l Laid) Blob(name string) string {
	if mode, id, _ := strings.Cut(l.ID(name), " "); strings.HasPrefix(mode, "100") {
		return id
	}
	return ""
}

// ID returns a file's mode in octal and its object id, or "".
func (l Laid) ID(name string) string {
	i, ok := find(l.entries, name)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%06o %x", l.entries[i].Mode, l.entries[i].OID)
}

// New returns the checkout in dir, which need not exist. It changes nothing before the first Update, but reads the
// repository's settings before a worker could change them.
func New(ctx context.Context, dir string, o Options) (*Checkout, error) {
	p := &Checkout{Dir: dir, o: o, kept: map[string]*kept{}, stale: map[string]bool{}}
	all, own, err := o.Git.RepoSettings(ctx, o.Common)
	if err != nil {
		return nil, err
	}
	p.settings, p.attributes = settings(all), own
	attributes := gitx.Quote(filepath.Join(dir, ".git/attributes"))
	p.settings = fmt.Appendf(p.settings, "[core]\n\tattributesFile = %s\n", attributes)
	if len(o.Sparse.Patterns) > 0 {
		p.settings = fmt.Appendf(p.settings, "[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = %t\n",
			o.Sparse.Cone)
	}
	p.tags, err = o.Git.PackedRefs(ctx, o.Common, "refs/tags/")
	return p, err
}

// Update checks out tree, with HEAD at commit, and opens the checkout. A failed setup is a *SetupError.
func (p *Checkout) Update(ctx context.Context, commit, tree string) (Laid, error) {
	p.hashSize = len(tree) / 2
	if err := p.recheck(); err != nil {
		return Laid{}, err
	}
	if err := p.writeRepo(commit); err != nil {
		return Laid{}, err
	}
	if err := p.furnish(ctx, commit, tree); err != nil {
		return Laid{}, err
	}
	if err := p.dropBuilds(); err != nil {
		return Laid{}, err
	}
	if err := p.stampDirs(); err != nil {
		return Laid{}, err
	}
	return p.laid, nil
}

// Builds reports whether builds in the checkout serve the next judgement, as with Cargo.
func (p *Checkout) Builds() bool {
	return slices.ContainsFunc(p.entries, func(e entry) bool { return path.Base(e.Path) == "Cargo.toml" })
}

// Put gives files a commit's contents until the next Update.
func (p *Checkout) Put(ctx context.Context, commit string, paths []string) error {
	return p.git(ctx, paths, "restore", "--quiet", "--source="+commit, "--staged", "--worktree",
		"--pathspec-from-file=-", "--pathspec-file-nul")
}

// Set sets a file's content until the next Update; nil removes the file.
func (p *Checkout) Set(name string, content []byte) error {
	at := filepath.Join(p.Dir, filepath.FromSlash(name))
	if err := proc.RemoveAll(at); err != nil || content == nil {
		return err
	}
	return os.WriteFile(at, content, 0o600)
}

// Close makes the checkout inaccessible while a worker works.
func (p *Checkout) Close() error {
	if p.top == nil {
		return nil
	}
	if err := p.keepBuilds(); err != nil {
		return err
	}
	return p.top.Chmod(0)
}

// Open ends the use of the checkout and makes its directory accessible to the user.
func (p *Checkout) Open() {
	if p.top == nil {
		return
	}
	_ = p.top.Chmod(0o700)
	p.top.Close()
	p.top = nil
	p.forget()
}

func (p *Checkout) forget() {
	p.index, p.tree, p.entries, p.files, p.dirs = nil, "", nil, map[string]stamp{}, nil
	p.stale, p.kept = map[string]bool{}, map[string]*kept{}
}

// recheck opens the checkout and compares its directories with their stamps. It removes added files. If the directory
// was replaced, it starts again.
func (p *Checkout) recheck() error {
	if p.top == nil {
		return p.begin()
	}
	if err := p.top.Chmod(0o700); err != nil {
		return err
	}
	if p.index == nil {
		return p.begin()
	}
	missing, err := p.changed(p.dirs, p.stays)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return p.begin()
	}
	return p.checkKept()
}

// begin creates an empty checkout.
func (p *Checkout) begin() error {
	if p.top != nil {
		p.top.Close()
		p.top = nil
	}
	p.forget()
	if err := proc.RemoveAll(p.Dir); err != nil {
		return err
	}
	if err := os.Mkdir(p.Dir, 0o700); err != nil {
		return err
	}
	top, err := os.OpenFile(p.Dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	p.top = top
	p.silent, err = isSilent(top)
	return err
}

// update changes the files to tree and stamps those that git wrote. It compares all others with their stamps, because
// git does not check them, and writes changed ones again.
func (p *Checkout) update(ctx context.Context, tree string) error {
	changed, err := p.changed(p.files, nil)
	for _, name := range changed {
		err = errors.Join(err, p.remove(name))
	}
	if err != nil {
		return err
	}
	reset := p.tree == "" || len(changed) > 0
	if !reset && tree == p.tree {
		return nil
	}
	index, entries, err := p.checkOut(ctx, tree, reset)
	if err == nil && p.index != nil && !slices.Equal(attributes(p.entries), attributes(entries)) {
		// Attributes decide how git lays out files that did not change: all are written again, as in a clone.
		for _, e := range entries {
			if e.Mode == gitlink {
				continue
			}
			if err := p.remove(e.Path); err != nil {
				return err
			}
		}
		clear(p.files)
		if err = os.Remove(filepath.Join(p.Dir, ".git", "index")); err == nil {
			index, entries, err = p.checkOut(ctx, tree, true)
		}
	}
	if err != nil {
		return err
	}
	return p.adopt(tree, index, entries)
}

// remove removes a file and its stamp.
func (p *Checkout) remove(name string) error {
	addAbove(p.stale, name)
	delete(p.files, name)
	return proc.RemoveAll(filepath.Join(p.Dir, name))
}

// attributes returns the entries that say how git lays out files.
func attributes(entries []entry) (out []entry) {
	for _, e := range entries {
		if path.Base(e.Path) == ".gitattributes" {
			out = append(out, e)
		}
	}
	return out
}

// adopt takes the stamps of the entries that are new or were written again.
func (p *Checkout) adopt(tree string, index []byte, entries []entry) error {
	for _, was := range p.entries {
		if i, ok := find(entries, was.Path); !ok || entries[i] != was {
			addAbove(p.stale, was.Path)
			delete(p.files, was.Path)
		}
	}
	laid := Laid{Files: make([]string, len(entries)), entries: entries}
	for i, e := range entries {
		laid.Files[i] = e.Path
		if _, known := p.files[e.Path]; known || e.Mode == gitlink {
			continue
		}
		addAbove(p.stale, e.Path)
		s, err := p.take(e.Path)
		if err != nil {
			return fmt.Errorf("%s: removed after the checkout: %w", e.Path, err)
		}
		p.files[e.Path] = s
	}
	p.tree, p.index, p.entries, p.laid = tree, index, entries, laid
	return nil
}

// stampDirs takes the stamps of the touched directories. A missing stamp only costs another scan. A directory that the
// last tree lacked may contain earlier builds.
func (p *Checkout) stampDirs() error {
	dirs := p.dirs
	if len(p.stale) > 0 || dirs == nil {
		dirs = map[string]stamp{}
		for dir := range directories(p.entries) {
			was, known := p.dirs[dir]
			if known && !p.stale[dir] {
				dirs[dir] = was
				continue
			}
			if !known && p.dirs != nil {
				if err := p.clear(dir, p.stays); err != nil {
					return err
				}
			}
			s, err := p.take(dir)
			if err != nil {
				return err
			}
			dirs[dir] = s
		}
	}
	p.dirs, p.stale = dirs, map[string]bool{}
	return nil
}

// changed removes unknown files from stamped directories, and returns the stamped paths that have changed.
func (p *Checkout) changed(stamps map[string]stamp, known func(name string) bool) (names []string, err error) {
	for name, was := range stamps {
		now, lookErr := p.look(name)
		switch {
		case was.isDir() && (lookErr != nil || !now.isDir()):
			names = append(names, name)
		case was.isDir() && (was.fresh || !now.equal(was)):
			if err := p.clear(name, known); err != nil {
				return nil, err
			}
			if stamps[name], err = p.take(name); err != nil {
				return nil, err
			}
		case was.isDir():
		case p.unchanged(name, &was):
			stamps[name] = was
		default:
			names = append(names, name)
		}
	}
	return names, nil
}

// removeIn removes the entries of a directory for which goes returns true.
func removeIn(dir string, goes func(name string) bool) error {
	entries, err := os.ReadDir(dir)
	for _, d := range entries {
		if err == nil && goes(d.Name()) {
			err = proc.RemoveAll(filepath.Join(dir, d.Name()))
		}
	}
	return err
}

// clear removes the unknown entries of a directory.
func (p *Checkout) clear(dir string, known func(name string) bool) error {
	return removeIn(filepath.Join(p.Dir, dir), func(name string) bool { return !known(path.Join(dir, name)) })
}

// stays reports whether name is tracked, or kept between judgements although no tree has it.
func (p *Checkout) stays(name string) bool {
	if name == ".git" || p.Has(name) {
		return true
	}
	for _, k := range p.kept {
		if _, ok := k.stamps[name]; ok {
			return true
		}
	}
	return false
}
