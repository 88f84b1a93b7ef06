package seed

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

const (
	maxDirEntries = 5000 // what is looked at below an imported directory
	overviewFile  = "overview.md"
)

// importDir reads the T-NNN-*.md files of a directory in the order of their names, or else its prd.json, its
// overview.md, and the acceptance tests that lie below it at their paths in the worktree. Symlinks that lead out of the
// directory are not followed.
func importDir(dir string) (*Imported, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, importError(dir, 0, formatsHint, "%s", plainError(err))
	}
	defer root.Close()
	d := &dirImport{dir: dir, root: root, files: map[string]string{}, im: newImported(dir)}
	if err := d.taskFiles(); err != nil {
		return nil, err
	}
	if err := d.tests(); err != nil {
		return nil, err
	}
	return d.im, d.im.validate(dir)
}

type dirImport struct {
	dir   string
	root  *os.Root
	im    *Imported
	files map[string]string // id → the file that has it
	total int
}

func (d *dirImport) name(rel string) string { return filepath.Join(d.dir, filepath.FromSlash(rel)) }

func (d *dirImport) taskFiles() error {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return importError(d.dir, 0, formatsHint, "%s", plainError(err))
	}
	found, plan := 0, false
	for _, e := range entries {
		switch {
		case taskFileName().MatchString(e.Name()):
			found++
			if found > maxTasks {
				return importError(d.dir, 0, splitFix, "it holds more than %d task files", maxTasks)
			}
			if err := d.taskFile(e.Name()); err != nil {
				return err
			}
		case strings.EqualFold(e.Name(), overviewFile):
			text, err := d.read(e.Name())
			if err != nil {
				return err
			}
			_, body, _, err := splitFrontmatter(d.name(e.Name()), string(text))
			if err != nil {
				return err
			}
			d.im.Overview = strings.TrimSpace(body)
			d.im.recognise("%s as the overview", e.Name())
		case e.Name() == session.TasksFile:
			plan = true
		case !e.IsDir() && !strings.HasPrefix(e.Name(), "."):
			if _, ok := taskOf(e.Name()); !ok {
				d.im.drop("%s: not named T-NNN-*.md", e.Name())
			}
		}
	}
	switch {
	case found == 0 && !plan:
		return d.noTasks()
	case found == 0: // the tests are laid out as those of task files
		text, err := d.read(session.TasksFile)
		if err != nil {
			return err
		}
		return d.im.parse(d.name(session.TasksFile), text)
	case plan:
		d.im.drop("%s: not named T-NNN-*.md", session.TasksFile)
	}
	d.im.Format = formatDirectory
	d.im.recognise("%s with %s", formatDirectory, text.Plural(found, "task file"))
	return nil
}

func (d *dirImport) noTasks() error {
	fix := "name the task files T-001-<words>.md"
	for _, other := range []string{"tasks.md", "TODO.md"} {
		if _, err := d.root.Stat(other); err == nil {
			fix = "there is a " + other + " in it: give that file"
			break
		}
	}
	return importError(d.dir, 0, fix, "there is no T-NNN-*.md and no prd.json in the directory")
}

func (d *dirImport) taskFile(rel string) error {
	text, err := d.read(rel)
	if err != nil {
		return err
	}
	tf, err := parseTaskFile(d.name(rel), text)
	if err != nil {
		return err
	}
	if before, ok := d.files[tf.task.ID]; ok {
		return importError(d.name(rel), tf.line, ownIDFix, "the id %s is that of %s already", tf.task.ID, before)
	}
	d.files[tf.task.ID] = rel
	d.im.addTaskFile(rel, tf)
	return nil
}

// read reads one text of the directory.
func (d *dirImport) read(rel string) ([]byte, error) {
	data, err := d.readFile(rel, maxImportBytes)
	if err != nil {
		return nil, err
	}
	return readText(d.name(rel), bytes.NewReader(data))
}

// readFile reads one regular file of the directory, byte for byte; the whole import is bounded.
func (d *dirImport) readFile(rel string, most int) ([]byte, error) {
	data, err := jsonl.ReadIn(d.dir, rel, int64(most)+1)
	d.total += len(data)
	fix := "put the file itself into the directory"
	switch {
	case err == nil && len(data) <= most && d.total <= maxTotalBytes:
		return data, nil
	case err == nil:
		return nil, importError(d.name(rel), 0, "make it smaller or take it away",
			"it is too large for a seed: at most %s a file and %s together are taken", byteSize(most),
			byteSize(maxTotalBytes))
	case errors.Is(err, jsonl.ErrIrregular):
		return nil, importError(d.name(rel), 0, "put a file there, or take it away", "it is not a regular file")
	case errors.Is(err, fs.ErrPermission):
		fix = "make it readable"
	}
	return nil, importError(d.name(rel), 0, fix, "%s", plainError(err))
}

// tests imports the files that are named by a task of the directory. A directory that is a repository of its own holds
// other features' tests too, so nothing is taken from there.
func (d *dirImport) tests() error {
	if d.isRepository(".") {
		d.im.drop("tests: the directory is a repository, so that files named by a task may belong to another feature")
		return nil
	}
	looked := 0
	err := fs.WalkDir(d.root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // a directory that cannot be read holds nothing to import
		}
		if looked++; looked > maxDirEntries {
			return importError(d.dir, 0, "give a directory with nothing but the tasks and their tests",
				"it holds more than %d files", maxDirEntries)
		}
		if e.IsDir() {
			if p != "." && (strings.HasPrefix(e.Name(), ".") || project.IsProduct(e.Name()) ||
				d.isRepository(p)) {
				return fs.SkipDir
			}
			return nil
		}
		return d.test(p, e)
	})
	if err == nil && len(d.im.TestFiles) > 0 {
		d.im.recognise("%s", text.Plural(len(d.im.TestFiles), "acceptance test"))
	}
	return err
}

// isRepository reports whether p is a repository or worktree within the directory, such as the one of a session
// directory: its files have paths of their own, and tests of other features among them.
func (d *dirImport) isRepository(p string) bool {
	_, err := d.root.Lstat(path.Join(p, ".git"))
	return err == nil
}

func (d *dirImport) test(p string, e fs.DirEntry) error {
	id, named := taskOf(p)
	if !named || taskFileName().MatchString(e.Name()) {
		if strings.Contains(p, "/") {
			d.im.drop("%s: not named by a task", p)
		}
		return nil
	}
	if session.IndexOf(d.im.Tasks, id) < 0 {
		d.im.drop("%s: %s is not a task of this seed", p, id)
		return nil
	}
	if !e.Type().IsRegular() {
		d.im.drop("%s: not a regular file", p)
		return nil
	}
	data, err := d.readFile(p, maxFileBytes)
	if err != nil {
		return err
	}
	if i := firstBadByte(data); i >= 0 {
		return notUTF8(d.name(p), data, i)
	}
	d.im.TestFiles[p] = string(data)
	return nil
}
