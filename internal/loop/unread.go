package loop

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/git-tilth/git-tilth/internal/gitx"
)

// showHidden adds to the patch the files that git calls binary and that can be read as text, and names the others.
func (a *attempt) showHidden(ctx context.Context, j *judged) error {
	var texts []string
	for _, f := range j.files {
		switch {
		case f.Mode == gitlink: // the patch has no more than a name of what lies there
			j.hidden = append(j.hidden, f.Path)
		case !f.Binary || f.Status == "D":
		case !j.cut && isReadable(filepath.Join(j.wt.Path, f.Path)):
			texts = append(texts, f.Path)
		default:
			j.hidden = append(j.hidden, f.Path)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	patch, cut, err := a.run.Git.Diff(ctx, a.run.Common, a.judged, j.tree, diffCap-int64(len(j.patch)), texts...)
	if cut {
		j.hidden = append(j.hidden, texts...)
	}
	j.patch = append(j.patch, patch...)
	return err
}

// filtered returns the changed files that git stores in another form, such as a filter's pointer: the patch shows the
// stored form.
func (a *attempt) filtered(j *judged) (out []string) {
	for _, f := range j.files {
		at := filepath.Join(j.dir, f.Path)
		fi, err := os.Lstat(at)
		if f.Status == "D" || err != nil || !fi.Mode().IsRegular() || slices.Contains(j.hidden, f.Path) {
			continue
		}
		// No file of the tree is larger than the limit for commits.
		if data, err := os.ReadFile(at); err != nil || !gitx.IsBlob(f.OID, data) {
			out = append(out, f.Path)
		}
	}
	return out
}

// isReadable reports whether a file is mostly text, whatever NUL bytes lie in between.
func isReadable(name string) bool {
	data, err := headOf(name, maxText+1)
	if err != nil || len(data) > maxText {
		return false
	}
	for _, mark := range []string{"\xff\xfe", "\xfe\xff"} { // of UTF-16, whose other bytes are mostly NUL
		data = bytes.TrimPrefix(data, []byte(mark))
	}
	data = bytes.ReplaceAll(data, []byte{0}, nil)
	readable := 0
	for rest := data; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r != utf8.RuneError && (unicode.IsPrint(r) || unicode.IsSpace(r)) {
			readable += n
		}
		rest = rest[n:]
	}
	return readable*100 >= len(data)*85
}

// headOf reads at most n bytes of a regular file.
func headOf(name string, n int64) ([]byte, error) {
	fi, err := os.Lstat(name)
	if err != nil || !fi.Mode().IsRegular() {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, n))
}

// loaders are beginnings of files that only a loader reads.
var loaders = []struct{ magic, what string }{
	{"\x7fELF", "a program or library"}, {"\xca\xfe\xba\xbe", "compiled code"},
	{"\xfe\xed\xfa\xce", "a program or library"}, {"\xfe\xed\xfa\xcf", "a program or library"},
	{"\xce\xfa\xed\xfe", "a program or library"}, {"\xcf\xfa\xed\xfe", "a program or library"},
}

// onlyLoaded returns the kind of unreadable code that a loader runs, or "" for any other file.
func onlyLoaded(name string) string {
	head, err := headOf(name, 4<<10)
	if err != nil {
		return ""
	}
	for _, l := range loaders {
		if bytes.HasPrefix(head, []byte(l.magic)) {
			return l.what
		}
	}
	if len(head) >= 64 && bytes.HasPrefix(head, []byte("MZ")) {
		at := int(binary.LittleEndian.Uint32(head[60:]))
		if at >= 0 && at+4 <= len(head) && bytes.Equal(head[at:at+4], []byte("PE\x00\x00")) {
			return "a program or library"
		}
	}
	// Python's: a number of two bytes for each version, from 3.0 on above 3000.
	if len(head) >= 16 && head[2] == '\r' && head[3] == '\n' && binary.LittleEndian.Uint16(head) >= 3000 &&
		bytes.IndexByte(head[:16], 0) >= 0 {
		return "compiled code"
	}
	return ""
}

// allowed reports whether tilth.allowBinary names a file.
func allowed(patterns []string, file string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		whole, _ := doublestar.Match(p, file)
		base, _ := doublestar.Match(p, path.Base(file))
		return whole || base
	})
}

// leadsOut reports whether a link in a tree leads out of it, by its target's path and whatever lies there.
func leadsOut(top, link, target string) bool {
	if filepath.IsAbs(target) {
		return true
	}
	at := path.Dir(link)
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			if at == "." {
				return true
			}
			// The directories above a link are above its target.
			if fi, err := os.Lstat(filepath.Join(top, at)); err == nil && fi.Mode()&os.ModeSymlink != 0 {
				return true
			}
			at = path.Dir(at)
		default:
			at = path.Join(at, part)
		}
	}
	return false
}

// unread returns the changes that add code for a loader, or links out of the tree that are not in known.
func unread(wt gitx.Worktree, changes []gitx.FileChange, allow []string,
	known func(path, oid string) (bool, error)) (map[string]string, error) {
	unfit := map[string]string{}
	for _, c := range changes {
		at := filepath.Join(wt.Path, c.Path)
		switch {
		case c.Status == "D" || c.Mode == gitlink:
		case c.Mode == linkMode:
			target, err := os.Readlink(at)
			if err != nil || !leadsOut(wt.Path, c.Path, filepath.ToSlash(target)) {
				continue
			}
			is, err := known(c.Path, c.OID)
			if err != nil {
				return nil, err
			}
			if !is {
				unfit[c.Path] = "a link that leads out of the repository; put the file there, or leave it out"
			}
		case !allowed(allow, c.Path):
			if what := onlyLoaded(at); what != "" {
				unfit[c.Path] = what + " that nobody can review; leave it out, or have it built by the project"
			}
		}
	}
	return unfit, nil
}
