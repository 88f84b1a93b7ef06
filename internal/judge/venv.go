package judge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/text"
)

// startup are the modules that an interpreter imports before anything that it is asked to run.
var startup = []string{"sitecustomize", "usercustomize"}

// venv is what a virtual environment for the judged tree is made of: the user's interpreter of the worker's version,
// links to what the worker installed, and a .pth file of its own. No .pth file of the worker's is read by the
// interpreter, as each of its lines may be code; the directories that they name are taken over, those of the worktree
// as the judged tree's.
func (p *Checkout) venv(ctx context.Context, dir string) (links map[string]string, files map[string][]byte, err error) {
	from := filepath.Join(p.o.Worktree, filepath.FromSlash(dir))
	libs, err := filepath.Glob(filepath.Join(text.GlobQuote(from), "lib", "python3*"))
	if err != nil || len(libs) != 1 {
		return nil, nil, fs.ErrNotExist
	}
	version := filepath.Base(libs[0])
	interpreter, err := p.interpreter(ctx, dir, version)
	if err != nil {
		return nil, nil, err
	}
	site := path.Join("lib", version, "site-packages")
	links = map[string]string{"bin/python": interpreter, "bin/python3": interpreter, "bin/" + version: interpreter}
	files = map[string][]byte{"pyvenv.cfg": p.venvConfig(dir, interpreter)}
	paths, err := p.sitePackages(dir, site, links)
	if err != nil {
		return nil, nil, err
	}
	if len(paths) > 0 {
		files[path.Join(site, "tilth.pth")] = []byte(strings.Join(paths, "\n") + "\n")
	}
	return links, files, p.venvScripts(dir, links, files)
}

// interpreter is the user's own of a version such as python3.11, with links and pyenv's shims resolved. It is looked
// for until it is found.
func (p *Checkout) interpreter(ctx context.Context, dir, version string) (string, error) {
	if at, ok := p.pythons[version]; ok {
		return at, nil
	}
	for _, name := range []string{version, "python3", "python"} {
		found, err := p.program(name)
		if err != nil {
			continue
		}
		o, err := proc.Run(ctx, proc.Cmd{
			Argv: []string{found, "-I", "-S", "-c",
				"import os, sys; print('python%d.%d' % sys.version_info[:2], os.path.realpath(sys.executable))"},
			Dir: os.TempDir(), Env: p.o.Environ, Timeout: time.Minute,
		})
		is, at, ok := strings.Cut(strings.TrimSpace(string(o.Output)), " ")
		if err == nil && o.ExitCode == 0 && ok && is == version && filepath.IsAbs(at) {
			p.pythons[version] = at
			return at, nil
		}
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	p.laid.SkippedDeps = append(p.laid.SkippedDeps, fmt.Sprintf(
		"%q was not lent to the judged tree: no program %q is on the PATH of git-tilth", dir, version))
	return "", fs.ErrNotExist
}

// venvConfig is pyvenv.cfg: whether the system's packages are seen is the worker's choice, the rest is ours.
func (p *Checkout) venvConfig(dir, interpreter string) []byte {
	system := "false"
	for line := range strings.Lines(string(p.readWorkers(dir, "pyvenv.cfg"))) {
		key, value, _ := strings.Cut(line, "=")
		if strings.TrimSpace(key) == "include-system-site-packages" && strings.TrimSpace(value) == "true" {
			system = "true"
		}
	}
	return fmt.Appendf(nil, "home = %s\ninclude-system-site-packages = %s\n", filepath.Dir(interpreter), system)
}

// sitePackages links the installed packages and returns the directories that .pth files add to the path.
func (p *Checkout) sitePackages(dir, site string, links map[string]string) (paths []string, err error) {
	from := filepath.Join(p.o.Worktree, filepath.FromSlash(dir), filepath.FromSlash(site))
	entries, err := os.ReadDir(from)
	if err != nil {
		return nil, err
	}
	for _, d := range entries {
		name := d.Name()
		stem, _, _ := strings.Cut(name, ".")
		switch {
		case slices.Contains(startup, stem), name == "__pycache__":
		case strings.HasPrefix(name, "__editable__") && strings.HasSuffix(name, "_finder.py"):
			paths = append(paths, p.editable(dir, p.readWorkers(dir, site, name))...)
		case strings.HasSuffix(name, ".pth"):
			paths = append(paths, p.pthPaths(dir, from, p.readWorkers(dir, site, name))...)
		default:
			links[path.Join(site, name)] = p.target(dir, from, d)
		}
	}
	// Python ends a line also where it has another control character than a newline, and the next one may be code.
	paths = slices.DeleteFunc(paths, func(p string) bool { return text.VisibleLine(p) != p })
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// pthPaths are the directories that a .pth file names; its lines of code are left out.
func (p *Checkout) pthPaths(dir, site string, data []byte) []string {
	var out []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || strings.HasPrefix(line, "import ") || strings.HasPrefix(line, "import\t") {
			continue
		}
		if !filepath.IsAbs(line) {
			line = filepath.Join(site, line)
		}
		out = append(out, p.judged(filepath.Clean(line), dir))
	}
	return out
}

var quoted = pattern.New(`'([^'\n]+)'|"([^"\n]+)"`)

// editable are the directories in which the packages of an editable install lie, as setuptools' finder names them:
// MAPPING = {'calc': '/…/workspace/src/calc'}.
func (p *Checkout) editable(dir string, finder []byte) []string {
	var out []string
	for line := range strings.Lines(string(finder)) {
		if !strings.HasPrefix(line, "MAPPING") {
			continue
		}
		for _, m := range quoted().FindAllStringSubmatch(line, -1) {
			to := m[1] + m[2]
			if judged := p.judged(to, dir); filepath.IsAbs(to) && judged != to {
				out = append(out, filepath.Dir(judged))
			}
		}
	}
	return out
}

// entryPoint is what a program that was installed from an entry point imports.
var entryPoint = pattern.New(`(?m)^from ([\w.]+) import (\w+)\s*$`)

// venvScripts takes over the programs of the virtual environment. One that the environment's interpreter runs is
// written anew for the entry point that it names; another one is linked, unless it would shadow a program of the
// user's.
func (p *Checkout) venvScripts(dir string, links map[string]string, files map[string][]byte) error {
	from := filepath.Join(p.o.Worktree, filepath.FromSlash(dir), "bin")
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	python := filepath.Join(p.Dir, filepath.FromSlash(dir), "bin", "python")
	for _, d := range entries {
		name := "bin/" + d.Name()
		own := strings.HasPrefix(d.Name(), "python") || strings.HasPrefix(strings.ToLower(d.Name()), "activate")
		if own || links[name] != "" {
			continue
		}
		// A native program may be large; the beginning of a script tells what it imports.
		script := p.readWorkers(dir, name)
		shebang, text, _ := bytes.Cut(script, []byte("\n"))
		switch m := entryPoint().FindSubmatch(text); {
		case bytes.HasPrefix(shebang, []byte("#!")) && bytes.Contains(shebang, []byte("python")):
			if m != nil {
				files[name] = fmt.Appendf(nil, "#!%s\nimport sys\nfrom %s import %s\nsys.exit(%s())\n", python, m[1],
					m[2], m[2])
			}
		case !p.shadows(d.Name()):
			links[name] = p.target(dir, from, d)
		}
	}
	return nil
}

// smallFile is the most that is read of a file which should be small.
const smallFile = 1 << 20

// readWorkers reads a small file of the worker's, "" where it is none. What is read comes to the judged tree, so that
// no link may lead to a file that the sandbox hides.
func (p *Checkout) readWorkers(name ...string) []byte {
	data, _ := jsonl.ReadIn(p.o.Worktree, filepath.Join(name...), smallFile)
	return data
}
