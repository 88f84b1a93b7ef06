package seed

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/session"
)

const overviewFile = "overview.md"

// listPlaces are where directories of spec-kit, OpenSpec and Kiro have their list, from the list's own directory up to
// the top of a repository.
var listPlaces = []string{"tasks.md", "*/tasks.md", "changes/*/tasks.md", "specs/*/tasks.md",
	"openspec/changes/*/tasks.md", ".kiro/specs/*/tasks.md"}

// backlogPlaces are where Backlog.md keeps its tasks.
var backlogPlaces = []string{".", "tasks", "backlog/tasks"}

// taskFileName matches the name of a file with one task: T-NNN, or of Backlog.md, which may have another prefix.
var taskFileName = pattern.New(`^(?:(T-[0-9]{3,18}|task-[0-9]+(?:\.[0-9]+)*)(?:[-_. ]+(.*))?|` +
	`([a-z]+-[0-9]+(?:\.[0-9]+)*) - (.*))\.(?:md|markdown)$`)

// fileTask returns the id and the title in a task file's name, or "" for another file.
func fileTask(name string) (id, title string) {
	if m := taskFileName().FindStringSubmatch(filepath.Base(name)); m != nil {
		id, title = m[1]+m[3], strings.TrimSpace(strings.NewReplacer("-", " ", "_", " ").Replace(m[2]+m[4]))
	}
	return id, title
}

// isOurs reports whether a file is named T-NNN-*.md.
func isOurs(name string) bool {
	id, _ := fileTask(name)
	return ownID().MatchString(id)
}

type dirImport struct {
	dir  string
	root *os.Root
	im   *Imported
}

// importDir reads the T-NNN-*.md files of a directory in the order of their names, or else its prd.json. It also reads
// overview.md, and the acceptance tests below the directory at their paths in the worktree. Otherwise the directory
// may be one of Backlog.md, spec-kit, OpenSpec or Kiro. It follows no symlink out of the directory.
func importDir(dir string, optional bool) (*Imported, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, importError(dir, 0, formatsHint, "%s", plainError(err))
	}
	defer root.Close()
	d := &dirImport{dir: dir, root: root, im: newImported(dir, optional)}
	if err := d.content(); err != nil {
		return nil, err
	}
	return d.im, d.im.validate(dir)
}

func (d *dirImport) name(rel string) string { return filepath.Join(d.dir, filepath.FromSlash(rel)) }

// content reads the tasks of the directory, its overview, and the tests that its tasks name.
func (d *dirImport) content() error {
	tasks, plan := d.named(".", isOurs), d.named(".", func(name string) bool { return name == session.TasksFile })
	if len(tasks)+len(plan) == 0 {
		return d.tools()
	}
	d.im.Format = formatDirectory
	for _, name := range d.named(".", func(name string) bool { return strings.EqualFold(name, overviewFile) }) {
		data, err := d.read(name)
		if err != nil {
			return err
		}
		_, body, _ := splitFrontmatter(data)
		d.im.Meta.TLDR, d.im.Context = strings.TrimSpace(body), append(d.im.Context, name)
	}
	err := d.tasks(tasks)
	if len(tasks) == 0 {
		var data string
		if data, err = d.read(session.TasksFile); err == nil {
			err = d.im.parse(d.name(session.TasksFile), []byte(data))
		}
	}
	if err != nil || len(d.im.TestFiles) > 0 { // a bundle has its own tests
		return err
	}
	if d.isRepository(".") {
		d.im.drop("tests: the directory is a repository, and files named like a task may be another feature's")
		return nil
	}
	return d.walk(".", func(p string, e fs.DirEntry) error {
		if isOurs(p) || strings.EqualFold(p, overviewFile) || len(tasks) == 0 && p == session.TasksFile {
			return nil
		}
		return d.test(p, e)
	})
}

// named lists the files of a directory with some names.
func (d *dirImport) named(in string, is func(name string) bool) (out []string) {
	entries, _ := fs.ReadDir(d.root.FS(), in)
	for _, e := range entries {
		if is(e.Name()) {
			out = append(out, path.Join(in, e.Name()))
		}
	}
	return out
}

// tools reads a directory of Backlog.md, or the tasks.md of another tool with the documents next to it as context.
func (d *dirImport) tools() error {
	for _, place := range backlogPlaces {
		if tasks := d.named(place, taskFileName().MatchString); len(tasks) > 0 {
			d.im.Format = formatBacklog
			for _, name := range d.named(place, func(name string) bool {
				return path.Ext(name) != "" && name[0] != '.' && !taskFileName().MatchString(name)
			}) {
				d.im.drop("%s: not named task-N - title.md", name)
			}
			return d.tasks(tasks)
		}
	}
	for _, place := range listPlaces {
		files, _ := fs.Glob(d.root.FS(), place)
		if len(files) > 1 {
			return importError(d.dir, 0, "give the directory of one of them", "it holds several lists: %s",
				strings.Join(files, ", "))
		}
		if len(files) == 1 {
			return d.list(files[0])
		}
	}
	return importError(d.dir, 0, "give the file of the list, or name the task files T-001-<words>.md",
		"there is no T-NNN-*.md, prd.json or tasks.md in the directory")
}

// tasks reads files that are one task each, in the order of their numbers.
func (d *dirImport) tasks(files []string) error {
	var entries []entry
	for _, file := range files {
		data, err := d.read(file)
		if err != nil {
			return err
		}
		e, err := d.im.taskFile(d.name(file), data)
		if err != nil {
			return err
		}
		entries = append(entries, e)
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		return slices.Compare(numbersOf(a.source), numbersOf(b.source))
	})
	return d.im.add(entries, true)
}

// numbersOf returns the numbers in an id such as task-10.1, for sorting.
func numbersOf(id string) (out []int) {
	for _, n := range strings.FieldsFunc(id, func(r rune) bool { return r < '0' || r > '9' }) {
		i, _ := strconv.Atoi(n)
		out = append(out, i)
	}
	return out
}

// isTaskFile reports whether a text is one task file. A list may have front matter too: it has tasks below headings, or
// boxes that are not acceptance criteria, and no id.
func isTaskFile(name, data string) bool {
	front, body, first := splitFrontmatter(data)
	if len(front) == 0 || isOurs(name) {
		return isOurs(name)
	}
	p := newImported(name, false).newPlan(name, body, first)
	p.findSections()
	for b := range p.tasks {
		if b.level > 1 {
			return false
		}
	}
	boxes, _, labelled, _ := p.evidence(p.root)
	return labelled || !boxes || front.get("id").Exists()
}

// taskFile reads a file that is one task: front matter, a description, and criteria as in a list. Id and title may be
// in a first heading, else in the file's name. A T-NNN file has the id of its name, and criteria.
func (im *Imported) taskFile(name, data string) (entry, error) {
	front, body, first := splitFrontmatter(data)
	e, err := im.readTask(name, 1, front)
	if err != nil {
		return e, err
	}
	p := im.newPlan(name, body, first)
	if len(p.root.parts) > 0 {
		if h := p.root.parts[0]; h.kind == section && h.level == 1 && !p.labels(h) {
			if e.source == "" && h.id != "" {
				e.source, e.line = h.id, first+h.begin
			}
			e.title = cmp.Or(e.title, h.title)
			p.take(h.begin, p.below(h))
		}
	}
	id, title := fileTask(name)
	e.source, e.title = cmp.Or(e.source, id), cmp.Or(e.title, title)
	p.fill(&e, p.root)
	switch {
	case isOurs(name) && e.source != id:
		return e, importError(name, e.line, "make them equal", "the id %s differs from the file's", e.source)
	case isOurs(name) && e.left == "" && len(e.criteria) == 0:
		return e, importError(name, 1, "write each criterion as a line that begins with - ",
			"there is no bullet below ## Acceptance criteria")
	}
	return e, nil
}

// list reads a list, and the documents in its directory and in specs/*/ below it as context. It names the other files.
func (d *dirImport) list(file string) error {
	in := path.Dir(file)
	var documents []string
	err := d.walk(in, func(p string, _ fs.DirEntry) error {
		name := strings.TrimPrefix(p, in+"/")
		spec, _ := path.Match("specs/*/spec.md", name)
		switch {
		case p == file:
		case spec || path.Dir(name) == "." && path.Ext(name) == ".md":
			documents = append(documents, name)
		case !d.isRepository(in):
			d.im.drop("%s: neither a list nor a document next to a list", p)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(documents, func(a, b string) int { // requirements and a spec before a plan and a design
		return cmp.Or(strings.Count(a, "/")-strings.Count(b, "/"), strings.Compare(path.Base(b), path.Base(a)),
			strings.Compare(a, b))
	})
	for _, name := range documents {
		data, err := d.read(path.Join(in, name))
		if err != nil {
			return err
		}
		_, body, _ := splitFrontmatter(data)
		d.im.note(name, "From "+name+":\n\n"+strings.Join(parseMarkdown(name, body, 1).lines, "\n"))
	}
	data, err := d.read(file)
	if err != nil {
		return err
	}
	d.im.phases = true
	return d.im.list(d.name(file), data)
}

// read reads one text of the directory.
func (d *dirImport) read(rel string) (string, error) {
	data, err := d.readFile(rel, maxImportBytes)
	if err == nil {
		data, err = readText(d.name(rel), bytes.NewReader(data))
	}
	return string(data), err
}

// readFile reads one regular file of the directory, byte for byte.
func (d *dirImport) readFile(rel string, most int) ([]byte, error) {
	data, err := jsonl.ReadIn(d.dir, rel, int64(most)+1)
	if errors.Is(err, jsonl.ErrIrregular) {
		err = errors.New("not a regular file")
	}
	if err == nil && len(data) > most {
		err = fmt.Errorf("it is too large: a file may have at most %s", kilobytes(most))
	}
	if err != nil {
		return nil, importError(d.name(rel), 0, "put a readable file there, or remove it", "%s", plainError(err))
	}
	return data, nil
}

// walk visits the files below a directory, except hidden ones, build products and other repositories.
func (d *dirImport) walk(top string, visit func(p string, e fs.DirEntry) error) error {
	return fs.WalkDir(d.root.FS(), top, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // a directory that cannot be read holds nothing to import
		}
		hidden := p != top && strings.HasPrefix(e.Name(), ".")
		switch {
		case e.IsDir() && p != top && (hidden || project.IsProduct(e.Name()) || d.isRepository(p)):
			return fs.SkipDir
		case e.IsDir() || hidden:
			return nil
		}
		return visit(p, e)
	})
}

// isRepository reports whether p is a repository or worktree in the directory, for example a session's. Its files have
// other paths, and may include tests of other features.
func (d *dirImport) isRepository(p string) bool {
	_, err := d.root.Lstat(path.Join(p, ".git"))
	return err == nil
}

// test takes a file as a test if its name has a task's id.
func (d *dirImport) test(p string, e fs.DirEntry) error {
	if id, _ := taskOf(p); session.IndexOf(d.im.Tasks, id) < 0 || !e.Type().IsRegular() {
		d.im.drop("%s: neither a task nor a test of a task", p)
		return nil
	}
	data, err := d.readFile(p, maxFileBytes)
	if err == nil {
		err = checkUTF8(d.name(p), data)
	}
	d.im.TestFiles[p] = string(data)
	return err
}
