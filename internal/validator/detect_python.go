package validator

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/packages"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/project"
)

func init() { finders[project.Python] = python }

// noBytecode keeps the checks from leaving __pycache__ behind.
const noBytecode = "PYTHONDONTWRITEBYTECODE=1"

// python finds ruff and mypy where they are configured, and pytest.
func python(ctx context.Context, p *layout) (vs []Validator) {
	if len(packages.Ending(p.Files, ".py")) == 0 {
		return nil
	}
	// ruff checks all packages below a configured one, with their own configuration if they have any.
	for _, dir := range packages.Outermost(p.configured("ruff")) {
		vs = append(vs, ruff(ctx, p, dir))
	}
	for _, dir := range p.configured("mypy") {
		vs = append(vs, mypy(ctx, p, dir))
	}
	dirs := p.pythonPackages()
	for _, dir := range dirs {
		vs = append(vs, pytest(ctx, p, dir, dirs)...)
	}
	return vs
}

// pythonPackages are the top and the directories with a manifest and tests, except modules of the package above.
func (p *layout) pythonPackages() []string {
	dirs := []string{"."}
	for _, manifest := range project.ByName(project.Python).Manifests {
		for _, dir := range p.DirsOf(manifest) {
			if !slices.Contains(dirs, dir) && !p.Exists(path.Join(dir, "__init__.py")) &&
				slices.ContainsFunc(packages.Below(p.Files, dir), isPytestFile) {
				dirs = append(dirs, dir)
			}
		}
	}
	slices.Sort(dirs)
	return dirs
}

// pyTool returns the command line of a Python tool: from the worktree's virtual environment, else as a module of the
// interpreter on PATH, or of the interpreter of the installed program, else by its name.
func (p *layout) pyTool(ctx context.Context, dir, module string) []string {
	var pythons []string
	for _, up := range packages.Above(dir) {
		for _, venv := range project.Venvs {
			python := filepath.Join(p.Installed(up, venv), "bin/python") // in the tree, else in the user's checkout
			if packages.Has(python, p.Root, p.Env) {
				pythons = append(pythons, python)
			}
		}
	}
	key := strings.Join(append(pythons, module), " ")
	if p.pyTools[key] == nil {
		p.pyTools[key] = p.findPyTool(ctx, append(pythons, "python3", "python", p.interpreterOf(module)), module)
	}
	return slices.Clone(p.pyTools[key])
}

func (p *layout) findPyTool(ctx context.Context, pythons []string, module string) []string {
	for _, python := range pythons {
		if packages.Has(python, p.Root, p.Env) && !p.holds(python) {
			if _, has := p.runPython(ctx, python, findModule, module); has {
				return []string{python, "-m", module}
			}
		}
	}
	return []string{module}
}

// holds reports whether a program is a file of the tree, because a worker may have written it.
func (p *layout) holds(program string) bool {
	at, err := filepath.Rel(p.Root, proc.RealPath(program))
	_, held := slices.BinarySearch(p.Held, filepath.ToSlash(at))
	return err == nil && held
}

// interpreterOf returns the interpreter that a script on PATH names in its first line, "" for none.
func (p *layout) interpreterOf(program string) string {
	at, err := proc.LookPath(program, p.Root, p.Env)
	if err != nil {
		return ""
	}
	at = proc.RealPath(at)
	script, _ := jsonl.ReadIn(filepath.Dir(at), filepath.Base(at), packages.ReadCap) // none: it is not a script
	line, _, _ := strings.Cut(string(script), "\n")
	python, ok := strings.CutPrefix(line, "#!")
	if !ok || !strings.HasPrefix(filepath.Base(python), "python") {
		return ""
	}
	return python
}

// pythonLauncher runs a module as python -m does, but loads it and its imports from the interpreter's own directories:
// the top of the tree comes after them, or, for the tests that pytest runs, before them once pytest is loaded.
const pythonLauncher = `import os, runpy, sys

if __name__ == "__main__":
    top, module = os.getcwd(), sys.argv.pop(1)
    sys.path[:] = [p for p in sys.path if os.path.abspath(p) not in (top, os.path.dirname(__file__))]
    if module == "pytest":
        import pytest

        class Top:
            def pytest_cmdline_parse(self):
                sys.path.insert(0, top)

        sys.exit(pytest.main(plugins=[Top()]))
    sys.path.append(top)
    runpy.run_module(module, run_name="__main__", alter_sys=True)
`

// topPlugin does the same as pythonLauncher for a pytest called by its own name.
const topPlugin = "import os, sys\n\nsys.path.insert(0, os.getcwd())\n"

// findModule succeeds if the interpreter has a module.
const findModule = "import importlib.util as u, sys; sys.exit(u.find_spec(sys.argv[1]) is None)"

// runPython runs code, in a directory without files that a worker can write.
func (p *layout) runPython(ctx context.Context, python, code string, args ...string) (output string, ok bool) {
	o, err := proc.Run(ctx, proc.Cmd{Argv: append([]string{python, "-c", code}, args...), Dir: "/", Env: p.Env,
		Timeout: time.Minute, Box: p.Box})
	return strings.TrimSpace(string(o.Output)), err == nil && o.ExitCode == 0
}

// configured returns the packages with a configuration of a tool: a file of its own, or a table in a manifest.
func (p *layout) configured(tool string) []string {
	dirs := p.Homes(project.ByName(project.Python))
	own := project.Sign{File: "{,.}" + tool + ".{toml,ini}"}
	table := project.Sign{File: "{pyproject.toml,setup.cfg}", Text: `(?m)^\s*\[+\s*(?:tool\.)?` + tool + `\b`}
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool {
		return !p.Shows(own, dir, dirs) && !p.Shows(table, dir, dirs)
	})
}

func ruff(ctx context.Context, p *layout, dir string) Validator {
	argv := append(p.pyTool(ctx, dir, "ruff"), "check")
	// Acceptance tests are fixed, so a task could not tidy them.
	given := packages.Ending(packages.Below(slices.Concat(p.required(), p.later), dir), ".py")
	if len(given) > 0 {
		argv = append(argv, "--extend-exclude", strings.Join(given, ","))
	}
	return Validator{Name: at("ruff", dir), Dir: dir, Argv: append(argv, "."), Env: []string{noBytecode}}
}

// mypyTargets matches a configuration with targets of mypy.
var mypyTargets = project.Sign{File: "{mypy.ini,.mypy.ini,pyproject.toml,setup.cfg}",
	Text: `(?m)^\s*\[(?:tool\.)?mypy\][ \t]*(?:\n[^\[\n].*|\n)*\n[ \t]*(?:files|packages|modules)\s*=`}

func mypy(ctx context.Context, p *layout, dir string) Validator {
	argv := p.pyTool(ctx, dir, "mypy")
	for _, f := range packages.Ending(packages.Below(p.later, dir), ".py") {
		argv = append(argv, "--exclude", "(^|/)"+regexp.QuoteMeta(f)+"$")
	}
	if !p.Shows(mypyTargets, dir, nil) {
		argv = append(argv, ".")
	}
	return Validator{Name: at("mypy", dir), Dir: dir, Argv: argv,
		Env: []string{noBytecode, "MYPY_CACHE_DIR=" + os.DevNull}}
}

const pytestRunner = "pytest"

// pytest's exit codes for arguments that it does not know, and for a run that collected no test.
const (
	usageError = 4
	noTests    = 5
)

// listPlugins prints the name and module of each plugin that pytest loads by itself.
const listPlugins = `import importlib.metadata

for of in importlib.metadata.distributions():
    for entry in of.entry_points:
        if entry.group == "pytest11":
            print(entry.name, entry.value)
`

// PytestPlugins lists the plugins that pytest loads by itself in a tree, each with its module.
func PytestPlugins(ctx context.Context, in ExecEnv, files []string) (plugins []string) {
	p := survey(in, files, Tasks{})
	for _, dir := range p.pythonPackages() {
		argv := p.pyTool(ctx, dir, "pytest")
		if len(argv) == 1 {
			continue
		}
		if lines, ok := p.runPython(ctx, argv[0], listPlugins); ok {
			plugins = append(plugins, strings.Split(lines, "\n")...)
		}
	}
	return plugins
}

// pytest runs the acceptance tests of this and earlier tasks, and the rest of the suite without later tasks' tests.
// These are two runs, because acceptance tests run even if the project's configuration excludes them.
func pytest(ctx context.Context, p *layout, dir string, dirs []string) []Validator {
	required := packages.Owned(packages.Ending(p.required(), ".py"), dir, dirs)
	later := packages.Owned(packages.Ending(p.later, ".py"), dir, dirs)
	others := packages.Without(packages.Owned(p.Files, dir, dirs), slices.Concat(later, required))
	suite := slices.ContainsFunc(others, isPytestFile)
	if len(required) == 0 && !suite {
		return nil
	}
	argv := p.pyTool(ctx, dir, "pytest")
	v := Validator{Name: at("pytest", dir), Dir: dir, Env: []string{noBytecode},
		runner: project.ByName(project.Python).Runner(pytestRunner)}
	v.plain = len(argv) == 1
	// One file that cannot be imported must not hide the results of the others.
	argv = append(argv, "-q", "--color=no", "--continue-on-collection-errors", "--rootdir=.")
	v.base = slices.Clone(argv)
	var vs []Validator
	if len(required) > 0 {
		given := v
		given.Argv, given.given = slices.Clone(argv), givens(dir, required, dotted)
		for _, f := range required {
			given.Argv = append(given.Argv, dashless(f))
		}
		vs, v.Name = append(vs, given), rest(v.Name)
	}
	if suite {
		for _, f := range packages.Without(slices.Concat(later, required, packages.Below(dirs, dir)), []string{"."}) {
			argv = append(argv, "--ignore="+f)
		}
		v.Argv, v.nothing = argv, noTests
		vs = append(vs, v)
	}
	return vs
}

// rest names the check of a suite without its acceptance tests.
func rest(name string) string { return name + " (suite)" }

func isPytestFile(f string) bool {
	base := filepath.Base(f)
	return strings.HasSuffix(base, ".py") && (strings.HasPrefix(base, "test_") || strings.HasSuffix(base, "_test.py"))
}

func joinPath(first, rest string) string {
	if rest == "" {
		return first
	}
	return first + string(os.PathListSeparator) + rest
}
