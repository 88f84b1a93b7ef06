package loop

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// showHidden adds files to the patch that git calls binary but that can be shown as text. It names the others.
func (a *attempt) showHidden(ctx context.Context, j *judged, readable map[string]bool) error {
	var texts []string
	for _, f := range j.files {
		switch {
		case f.Mode == gitlink: // the patch shows only the commit's id
			j.hidden = append(j.hidden, f.Path)
		case !f.Binary || f.Status == "D":
		case !j.cut && readable[f.Path]:
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

// filtered returns the changed files that git stores in another form, for example as a filter's pointer. The patch
// shows the stored form. loaded are the files among them that have code for a loader in the judged checkout, with the
// kind of code.
func (a *attempt) filtered(j *judged) (out []string, loaded map[string]string) {
	loaded = map[string]string{}
	for _, f := range j.files {
		if f.Status == "D" || f.Mode == linkMode || f.Mode == gitlink || slices.Contains(j.hidden, f.Path) {
			continue
		}
		data, err := jsonl.ReadIn(j.dir, filepath.FromSlash(f.Path), blobLimit)
		if err == nil && gitx.IsBlob(f.OID, data) {
			continue
		}
		out = append(out, f.Path)
		if what := onlyLoaded(f.Path, data); what != "" && !allowed(a.run.o.AllowBinary, f.Path) {
			loaded[f.Path] = unreviewable(what)
		}
	}
	return out, loaded
}

// blobLimit limits how many bytes of a file of the judged checkout are read.
const blobLimit = 64 << 20

// isReadable reports whether a content is mostly text. It may have NUL bytes.
func isReadable(data []byte) bool {
	if len(data) > maxText {
		return false
	}
	for _, mark := range []string{"\xff\xfe", "\xfe\xff"} { // UTF-16: every other byte is mostly NUL
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

// loaders are the first bytes of files that only a loader reads.
var loaders = []struct{ magic, what string }{
	{"\x7fELF", "a program or library"}, {"\xca\xfe\xba\xbe", "compiled code"},
	{"\xfe\xed\xfa\xce", "a program or library"}, {"\xfe\xed\xfa\xcf", "a program or library"},
	{"\xce\xfa\xed\xfe", "a program or library"}, {"\xcf\xfa\xed\xfe", "a program or library"},
}

// onlyLoaded returns the kind of machine code or byte code in a file, or "" for any other file.
func onlyLoaded(name string, data []byte) string {
	head := data[:min(len(data), 4<<10)]
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
	// Python: a two-byte number for each version, above 3000 since 3.0.
	if len(head) >= 16 && head[2] == '\r' && head[3] == '\n' && binary.LittleEndian.Uint16(head) >= 3000 &&
		bytes.IndexByte(head[:16], 0) >= 0 {
		return "compiled code"
	}
	if isLoadedArchive(name, data) {
		return "an archive of code"
	}
	return ""
}

// archives are the extensions of zip archives that loaders and package managers read. loadedMembers are the extensions
// of files that they run from a zip archive of any name.
var (
	archives = []string{".zip", ".jar", ".war", ".ear", ".whl", ".egg", ".pyz", ".phar"}

	loadedMembers = []string{".py", ".pyc", ".class", ".php", ".so", ".pyd", ".dll", ".jar"}
)

// isLoadedArchive reports whether a file is a zip archive from which a loader runs code. A zip archive may begin with
// anything, because its directory is at the end (APPNOTE.TXT, 4.3.16). Documents that are zip archives contain no
// code.
func isLoadedArchive(name string, data []byte) bool {
	const endRecord, endSize = "PK\x05\x06", 22 + 1<<16
	if !bytes.Contains(data[max(len(data)-endSize, 0):], []byte(endRecord)) {
		return false
	}
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return true // other readers may accept the archive
	}
	ends := func(name string, with []string) bool {
		return slices.Contains(with, strings.ToLower(path.Ext(name)))
	}
	return len(r.File) > 0 && ends(name, archives) ||
		slices.ContainsFunc(r.File, func(f *zip.File) bool { return ends(f.Name, loadedMembers) })
}

// allowed reports whether tilth.allowBinary matches a file.
func allowed(patterns []string, file string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		whole, _ := doublestar.Match(p, file)
		base, _ := doublestar.Match(p, path.Base(file))
		return whole || base
	})
}

// leadsOut reports whether a link leads out of its tree, by its target's path. links are the links of the tree.
func leadsOut(links map[string]bool, link, target string) bool {
	if path.IsAbs(target) {
		return true
	}
	at := path.Dir(link)
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			// At a link, .. leads to the parent of the link's target.
			if at == "." || links[at] {
				return true
			}
			at = path.Dir(at)
		default:
			at = path.Join(at, part)
		}
	}
	return false
}

// gitDirectories returns the directories of a tree that git accepts as repositories: HEAD with objects and refs, or
// with a commondir (gitrepository-layout). Plain git in such a directory reads its config. It skips the top, where git
// prefers .git.
func gitDirectories(files []string) (dirs []string) {
	parts := map[string]map[string]bool{}
	for _, f := range files {
		for dir, below := path.Split(f); ; dir, below = path.Split(strings.TrimSuffix(dir, "/")) {
			below = strings.ToLower(below)
			if parts[dir] == nil {
				parts[dir] = map[string]bool{}
			}
			done := parts[dir][below] || dir == ""
			if parts[dir][below] = true; done {
				break
			}
		}
	}
	for dir, has := range parts {
		if dir != "" && has["head"] && (has["objects"] && has["refs"] || has["commondir"]) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// staged has facts about the contents of a change's staged files.
type staged struct {
	unfit    map[string]string // by path, why a file cannot be committed
	readable map[string]bool   // files to show as text
}

// contents reads the staged files of a change. These files cannot be committed: files larger than maxSize bytes (0: no
// limit), code for a loader that allow does not match, links out of the tree that known does not report, and
// directories that are repositories.
func contents(ctx context.Context, g *gitx.Git, common, tree string, changes []gitx.FileChange, maxSize int64,
	allow []string, known func(path, oid string) bool) (s staged, err error) {
	s = staged{unfit: map[string]string{}, readable: map[string]bool{}}
	var files []gitx.FileChange
	var ids []string
	for _, c := range changes {
		if c.Status != "D" && c.Mode != gitlink {
			files, ids = append(files, c), append(ids, c.OID)
		}
	}
	if len(changes) == 0 {
		return s, nil
	}
	list, err := g.List(ctx, gitx.InRepo(common, "ls-tree", "-r", "-z", "--full-tree", tree))
	if err != nil {
		return s, err
	}
	paths, links := make([]string, len(list)), map[string]bool{}
	for i, line := range list {
		mode, rest, _ := strings.Cut(line, " ")
		_, paths[i], _ = strings.Cut(rest, "\t")
		links[paths[i]] = mode == linkMode
	}
	i := 0
	err = g.EachBlob(ctx, common, ids, func(_ string, size int64, data []byte) {
		f := files[i]
		i++
		s.readable[f.Path] = int64(len(data)) == size && isReadable(data)
		switch {
		case maxSize > 0 && size > maxSize:
			s.unfit[f.Path] = tooLarge(size, maxSize)
		case f.Mode == linkMode:
			if leadsOut(links, f.Path, string(data)) && !known(f.Path, f.OID) {
				s.unfit[f.Path] = "a link that leads out of the repository; put the file there, or leave it out"
			}
		case !allowed(allow, f.Path):
			if what := onlyLoaded(f.Path, data); what != "" {
				s.unfit[f.Path] = unreviewable(what)
			}
		}
	})
	for _, dir := range gitDirectories(paths) {
		for _, f := range files {
			if strings.HasPrefix(f.Path, dir) && !allowed(allow, f.Path) {
				s.unfit[f.Path] = "part of a directory that is itself a git repository; make it in the test instead"
			}
		}
	}
	return s, err
}

// tooLarge returns the message about a file larger than tilth.maxFileSize.
func tooLarge(size, maxSize int64) string {
	return fmt.Sprintf("%d bytes are more than the %d of tilth.maxFileSize; remove or ignore it", size, maxSize)
}

// unreviewable returns the message about code for a loader.
func unreviewable(what string) string {
	return what + " that nobody can review; leave it out, or have it built by the project"
}
