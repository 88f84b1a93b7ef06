package seed

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Tick checks a task's item off in the checklist at a path in a worktree: its box, or those below its heading. boxes is
// how many it has, 0 where the list has no such item any more. Each box is one byte, so that the file is whole at any
// moment.
func Tick(worktree, path string, t session.Task) (boxes int, err error) {
	root, err := os.OpenRoot(worktree)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	path = filepath.FromSlash(path)
	info, err := root.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, err
	case !info.Mode().IsRegular() || info.Size() > maxImportBytes:
		return 0, nil // the worker's doing
	}
	f, err := root.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxImportBytes))
	for _, at := range boxesOf(string(data), t) {
		if boxes++; err == nil && data[at] == ' ' {
			_, err = f.WriteAt([]byte("x"), int64(at))
		}
	}
	return boxes, errors.Join(err, f.Close())
}

// boxesOf finds the boxes of a task, by what stands between their brackets: of the one item that has its id and title,
// or else its title and no id. Of several it is not known which one is meant.
func boxesOf(data string, t session.Task) (at []int) {
	data = strings.ReplaceAll(data, "\r\n", " \n")
	_, body, first, err := splitFrontmatter("", data)
	if err != nil {
		return nil
	}
	starts := []int{0}
	for i, c := range data {
		if c == '\n' {
			starts = append(starts, i+1)
		}
	}
	lines := scanMarkdown(body, first)
	headings, level := hasTaskHeadings(lines), 0
	found := map[string][][]int{} // by the id that is named, the boxes of each item
	var item *[]int
	for _, l := range lines {
		id, title, begins := l.taskHeading()
		if !headings {
			begins = l.box
			id, title = splitID(l.text)
		}
		switch {
		case begins && text.OneLine(stripEmphasis(title)) == t.Title:
			found[id], level = append(found[id], nil), l.heading
			item = &found[id][len(found[id])-1]
		case begins || l.heading > 0 && l.heading <= level:
			item = nil
		}
		if l.box && item != nil {
			*item = append(*item, starts[l.n-1]+strings.Index(data[starts[l.n-1]:], "[")+1)
		}
	}
	for _, id := range []string{t.ID, ""} {
		if len(found[id]) == 1 {
			return found[id][0]
		}
	}
	return nil
}
