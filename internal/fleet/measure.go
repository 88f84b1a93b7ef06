package fleet

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
)

// A remote's data is measured before it is laid out. A few objects can represent any number of files, so git lists at
// most the allowed number of entries of a tree.

// maxEntries is the most files and directories of a tree beyond the base; entrySize the bytes of one in git's list.
const (
	maxEntries = 4 * maxFiles
	entrySize  = 90
)

// extent is how much a tree holds once it is laid out.
type extent struct{ entries, files, bytes int64 }

// measure refuses a session in a scratch repository if it, or the trees of its commits beyond base, have more than
// limit bytes or more than maxFiles files beyond base. 0 is no limit.
func (s *scratchRepo) measure(ctx context.Context, session, base string, commits []string, limit int64) error {
	if limit <= 0 {
		limit = math.MaxInt64
	}
	sent, err := sizeBelow(filepath.Join(s.dir, "objects"))
	if err != nil {
		return err
	}
	had, most := extent{}, extent{}
	if base != "" { // a commit of the user's own
		if had, err = s.extent(ctx, base, 0); err != nil {
			return err
		}
	}
	whole, err := s.extent(ctx, session, maxEntries)
	if err != nil {
		return err
	}
	for _, c := range commits {
		tree, err := s.extent(ctx, c, had.entries+maxEntries)
		if err != nil {
			return err
		}
		most.files = max(most.files, tree.files-had.files)
		most.bytes = max(most.bytes, tree.bytes-had.bytes)
	}
	files, size := whole.files+most.files, max(whole.bytes+most.bytes, sent)
	if files > maxFiles || size > limit {
		limits := fmt.Sprintf("the limit is %d files", maxFiles)
		if limit < math.MaxInt64 {
			limits = fmt.Sprintf("the limits are %d files and %d bytes (tilth.maxFetch)", maxFiles, limit)
		}
		return fmt.Errorf("it is too large: %d files and %d bytes more than the base; %s", files, size, limits)
	}
	return nil
}

// extent counts a commit's tree, with at most so many entries, 0 for any number. Submodules count as neither files nor
// trees.
func (s *scratchRepo) extent(ctx context.Context, commit string, most int64) (e extent, err error) {
	c := s.command("ls-tree", "-r", "-t", "--full-tree", "--format=%(objectname) %(objectsize)", commit)
	c.Limit = most * entrySize
	out, err := s.git.Read(ctx, c)
	if err == nil && most > 0 && int64(len(out)) >= c.Limit {
		err = fmt.Errorf("it is too large: a tree in it has too many files; the limit is %d more than the base",
			maxFiles)
	}
	for line := range bytes.Lines(out) {
		e.entries++
		_, size, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if n, no := strconv.ParseInt(size, 10, 64); no == nil {
			e.files, e.bytes = e.files+1, e.bytes+n
		}
	}
	return e, err
}

// sizeBelow returns the size of the files below a directory, in bytes.
func sizeBelow(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		switch {
		case err == nil && d.IsDir() && d.Name() == "info": // where else objects are
			return filepath.SkipDir
		case err != nil || d.IsDir():
			return err
		}
		fi, err := d.Info()
		if err == nil {
			total += fi.Size()
		}
		return err
	})
	return total, err
}

// baseOf is the commit that a session was made at: the nearest to its tip that the user's repository has, "" for none.
func (s *scratchRepo) baseOf(ctx context.Context, tip string) string {
	refs, err := s.out.List(ctx, gitx.InRepo(s.common, "for-each-ref", "--count=500", "--sort=-committerdate",
		"--format=%(objectname)%00", "refs/heads", "refs/remotes"))
	if err != nil {
		return ""
	}
	args := []string{"merge-base", tip}
	for _, id := range refs {
		switch id = strings.TrimSpace(id); {
		case id == tip:
			return tip
		case id != "" && !slices.Contains(args, id):
			args = append(args, id)
		}
	}
	base, err := s.git.Read(ctx, s.command(args...))
	if err != nil || len(args) == 2 {
		return ""
	}
	return strings.TrimSpace(string(base))
}
