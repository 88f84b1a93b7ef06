package judge

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

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
	// Seed is the commit whose dependencies setup installs for any tree; "" for the tree's own.
	Seed string
	// Repaired is called for each repair, with texts for the record.
	Repaired func(what, done string) error
}

// Checkout is the directory in which changes are judged. It is one process's, and serves one judgement after the other.
type Checkout struct {
	Dir string

	o          Options
	top        *os.File // the directory itself, nil before the first layout
	silent     bool     // the ctimes of its files do not tell all changes
	settings   []byte
	attributes []byte // the user's own
	tags       []byte
	hashSize   int

	tree    string
	index   []byte // as git wrote it; nil: nothing is laid out
	entries []entry
	files   []stamp          // of the entries, in their order
	dirs    map[string]stamp // of the directories that hold entries
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
	i, ok := find(l.entries, name)
	if !ok || l.entries[i].Mode&unix.S_IFMT != unix.S_IFREG {
		return ""
	}
	return hex.EncodeToString([]byte(l.entries[i].OID))
}

// ID returns the mode of a file, in octal, and its object id, or "".
func (l Laid) ID(name string) string {
	i, ok := find(l.entries, name)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%06o %x", l.entries[i].Mode, l.entries[i].OID)
}

// New returns the checkout in dir, which need not exist. It changes nothing before the first Update, but reads the
// settings of the repository before a worker could change them.
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
	p.tags, err = o.Git.Tags(ctx, o.Common)
	return p, err
}

// Update makes the place hold tree and opens it. HEAD is at commit. A setup that fails is the caller's kind of error.
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

// Has reports whether the laid-out tree has a file.
func (p *Checkout) Has(file string) bool {
	_, is := find(p.entries, file)
	return is
}

// Put gives the files at paths the contents that a commit has for them, until the next Update.
func (p *Checkout) Put(ctx context.Context, commit string, paths []string) error {
	return p.git(ctx, paths, "restore", "--quiet", "--source="+commit, "--staged", "--worktree",
		"--pathspec-from-file=-", "--pathspec-file-nul")
}

// Set gives a file a content, until the next Update; nil takes it away.
func (p *Checkout) Set(name string, content []byte) error {
	at := filepath.Join(p.Dir, filepath.FromSlash(name))
	if err := proc.RemoveAll(at); err != nil || content == nil {
		return err
	}
	return os.WriteFile(at, content, 0o600)
}

// Close closes the place while a worker works.
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
	p.index, p.tree, p.entries, p.files, p.dirs = nil, "", nil, nil, nil
	p.stale, p.kept = map[string]bool{}, map[string]*kept{}
}

// recheck opens the checkout and compares its directories with their stamps. It removes added files. If the directory
// is not the one that was laid out, it starts again.
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
	whole, err := p.checkDirs()
	switch {
	case err != nil:
		return err
	case !whole:
		return p.begin()
	}
	return p.checkKept()
}

// begin makes an empty place.
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

// update brings the files to tree and takes the stamps of those that git wrote. The others, which git does not look at,
// are compared with their stamps.
func (p *Checkout) update(ctx context.Context, tree string) (err error) {
	index, entries := p.index, p.entries
	differing := p.differing()
	if index == nil || tree != p.tree {
		if index, entries, err = p.checkOut(ctx, tree, p.tree == ""); err != nil {
			return err
		}
	}
	if p.index != nil && !slices.Equal(attributes(p.entries), attributes(entries)) {
		if index, entries, err = p.layOutAnew(ctx, tree, entries); err != nil {
			return err
		}
		differing = nil
	}
	changed := p.stillThere(differing, entries)
	for _, name := range changed {
		addAbove(p.stale, name)
		if err := proc.RemoveAll(filepath.Join(p.Dir, name)); err != nil {
			return err
		}
	}
	if len(changed) > 0 {
		if index, entries, err = p.checkOut(ctx, tree, true); err != nil {
			return err
		}
	} else if tree == p.tree {
		return nil
	}
	return p.adopt(tree, index, entries)
}

// layOutAnew writes all files of a tree again, without an index, as a clone does: attributes decide how git lays out
// files that did not change.
func (p *Checkout) layOutAnew(ctx context.Context, tree string, laid []entry) ([]byte, []entry, error) {
	for _, e := range laid {
		if e.Mode == gitlink {
			continue
		}
		addAbove(p.stale, e.Path)
		if err := proc.RemoveAll(filepath.Join(p.Dir, e.Path)); err != nil {
			return nil, nil, err
		}
	}
	clear(p.files)
	if err := os.Remove(filepath.Join(p.Dir, ".git", "index")); err != nil {
		return nil, nil, err
	}
	return p.checkOut(ctx, tree, true)
}

// attributes are the entries that say how git lays out files.
func attributes(entries []entry) (out []entry) {
	for _, e := range entries {
		if path.Base(e.Path) == ".gitattributes" {
			out = append(out, e)
		}
	}
	return out
}

// stillThere returns the files that are unchanged in the new entries: git did not write them.
func (p *Checkout) stillThere(names []string, entries []entry) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		was, _ := find(p.entries, name)
		is, ok := find(entries, name)
		return !ok || entries[is] != p.entries[was]
	})
}

// adopt takes the stamps of the entries that are new or were written again. Both lists are sorted.
func (p *Checkout) adopt(tree string, index []byte, entries []entry) error {
	files := make([]stamp, len(entries))
	laid := Laid{Files: make([]string, len(entries)), entries: entries}
	was := 0
	for i, e := range entries {
		laid.Files[i] = e.Path
		for ; was < len(p.entries) && p.entries[was].Path < e.Path; was++ {
			addAbove(p.stale, p.entries[was].Path)
		}
		same := was < len(p.entries) && p.entries[was] == e
		if same && p.files[was].mode != 0 {
			files[i] = p.files[was]
			was++
			continue
		}
		if e.Mode == gitlink {
			continue
		}
		addAbove(p.stale, e.Path)
		s, err := p.take(e.Path)
		if err != nil {
			return fmt.Errorf("%s: removed after the checkout: %w", e.Path, err)
		}
		files[i] = s
	}
	for ; was < len(p.entries); was++ {
		addAbove(p.stale, p.entries[was].Path)
	}
	p.tree, p.index, p.entries, p.files, p.laid = tree, index, entries, files, laid
	return nil
}

// stampDirs takes the stamps of the touched directories. A missed one only costs a look next time. A directory that the
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
				if err := p.clear(dir); err != nil {
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

// checkDirs removes files added to the directories. whole is false if a directory is missing, so that the checkout has
// to start again.
func (p *Checkout) checkDirs() (whole bool, err error) {
	var changed []string
	for dir, was := range p.dirs {
		now, err := p.look(dir)
		if err != nil || !now.isDir() {
			return false, nil
		}
		if was.fresh || !now.equal(was) {
			changed = append(changed, dir)
		}
	}
	for _, dir := range changed {
		if err := p.clear(dir); err != nil {
			return false, err
		}
	}
	return true, nil
}

// differing lists the tracked files that are not as they were laid out.
func (p *Checkout) differing() (names []string) {
	for at, e := range p.entries {
		if e.Mode != gitlink && !p.unchanged(e.Path, &p.files[at]) {
			p.files[at] = stamp{} // to be taken again
			names = append(names, e.Path)
		}
	}
	return names
}

// removeIn removes the entries of a directory for which goes is true.
func removeIn(dir string, goes func(name string) bool) error {
	entries, err := os.ReadDir(dir)
	for _, d := range entries {
		if err == nil && goes(d.Name()) {
			err = proc.RemoveAll(filepath.Join(dir, d.Name()))
		}
	}
	return err
}

// clear removes the entries of a directory that are neither tracked nor kept.
func (p *Checkout) clear(dir string) error {
	p.stale[dir] = true
	return removeIn(filepath.Join(p.Dir, dir), func(name string) bool {
		name = path.Join(dir, name)
		return name != ".git" && !p.tracked(name) && !p.stays(name)
	})
}

// stays reports whether name is kept from one judgement to the next although no tree holds it.
func (p *Checkout) stays(name string) bool {
	for _, k := range p.kept {
		if _, ok := k.stamps[name]; ok {
			return true
		}
	}
	return false
}
