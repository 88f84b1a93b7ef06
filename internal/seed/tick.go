package seed

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/session"
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

// boxesOf returns the positions of a task's box marks: in the item with its id and title, else with its title and no
// id. If several items match, it returns none.
func boxesOf(data string, t session.Task) (at []int) {
	data = strings.ReplaceAll(data, "\r\n", " \n")
	list, err := newImported("").readChecklist("", data)
	if err != nil {
		return nil
	}
	found := map[string][]item{} // by the id that is named
	for _, it := range list.items {
		if it.title == t.Title {
			found[it.id] = append(found[it.id], it)
		}
	}
	its := found[t.ID]
	if len(its) != 1 {
		its = found[""]
	}
	if len(its) != 1 {
		return nil
	}
	line, begins := 1, 0
	for text := range strings.Lines(data) {
		if slices.Contains(its[0].boxes, line) {
			at = append(at, begins+strings.Index(text, "[")+1)
		}
		line, begins = line+1, begins+len(text)
	}
	return at
}
