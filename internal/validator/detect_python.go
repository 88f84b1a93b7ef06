package validator

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/project"
)

func init() {
	kinds[project.Python] = kind{python, "*.py", func(files []string) []string { return ending(files, ".py") }}
}

// noBytecode keeps the checks from leaving __pycache__ behind.
const noBytecode = "PYTHONDONTWRITEBYTECODE=1"

// python finds ruff and mypy where they are configured, and pytest.
func python(ctx context.Context, p *layout) []Validator {
	if len(ending(p.files, ".py")) == 0 {
		return nil
	}
	return slices.Concat(ruff(ctx, p), mypy(ctx, p), pytest(ctx, p))
}

// pyTool returns the command line of a Python tool: from the worktree's virtual environment, else as a module of the
// interpreter on PATH, or of the interpreter of the installed program, else by its name.
func (p *layout) pyTool(ctx context.Context, module string) []string {
	for _, python := range []string{
		filepath.Join(p.root, ".venv/bin/python"), filepath.Join(p.root, "venv/bin/python"), "python3", "python",
		p.interpreterOf(module),
	} {
		if has(python, p.root, p.env) && !p.holds(python) && p.importable(ctx, python, module) {
			return []string{python, "-m", module}
		}
	}
	return []string{module}
}

// holds reports whether a program is a file of the tree, which whoever changes the tree may have written.
func (p *layout) holds(program string) bool {
	at, err := filepath.Rel(p.root, proc.RealPath(program))
	_, held := slices.BinarySearch(p.held, filepath.ToSlash(at))
	return err == nil && held
}

// interpreterOf is the interpreter that a script on PATH names in its first line, "" for none.
func (p *layout) interpreterOf(program string) string {
	at, err := proc.LookPath(program, p.root, p.env)
	if err != nil {
		return ""
	}
	at = proc.RealPath(at)
	script, _ := jsonl.ReadIn(filepath.Dir(at), filepath.Base(at), readCap) // none: it is no script
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

// topPlugin does the same as pythonLauncher for a pytest that is run by its own name.
const topPlugin = "import os, sys\n\nsys.path.insert(0, os.getcwd())\n"

// importable asks an interpreter for a module, from a directory where no file that a worker can write is mistaken for
// it.
func (p *layout) importable(ctx context.Context, python, module string) bool {
	const find = "import importlib.util as u, sys; sys.exit(u.find_spec(sys.argv[1]) is None)"
	o, err := proc.Run(ctx, proc.Cmd{Argv: []string{python, "-c", find, module}, Dir: "/", Env: p.env,
		Timeout: time.Minute, Box: p.box})
	return err == nil && o.ExitCode == 0
}

// section returns the text of a table in an ini or TOML file, and whether it is
// there; its sub-tables count as a part of it.
func section(text, name string) (body string, ok bool) {
	header := pattern.New(`^\s*\[+\s*` + regexp.QuoteMeta(name) + `\s*(?:\]|\.|:)`)
	inside := false
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "[") {
			inside = header().MatchString(line)
			ok = ok || inside
		} else if inside {
			out.WriteString(line)
		}
	}
	return out.String(), ok
}

func ruff(ctx context.Context, p *layout) []Validator {
	_, configured := section(p.read("pyproject.toml"), "tool.ruff")
	if !configured && !p.exists("ruff.toml") && !p.exists(".ruff.toml") {
		return nil
	}
	argv := append(p.pyTool(ctx, "ruff"), "check")
	// Acceptance tests are given: a task could not make them any tidier.
	if given := ending(slices.Concat(p.required(), p.later), ".py"); len(given) > 0 {
		argv = append(argv, "--extend-exclude", strings.Join(given, ","))
	}
	return []Validator{{Name: "ruff", Argv: append(argv, "."), Env: []string{noBytecode}}}
}

var mypyTargets = pattern.New(`(?m)^\s*(files|packages|modules)\s*=`)

func mypy(ctx context.Context, p *layout) []Validator {
	conf, configured := "", false
	for _, c := range []struct{ file, section string }{
		{"mypy.ini", "mypy"}, {".mypy.ini", "mypy"}, {"pyproject.toml", "tool.mypy"}, {"setup.cfg", "mypy"},
	} {
		if conf, configured = section(p.read(c.file), c.section); configured {
			break
		}
	}
	if !configured {
		return nil
	}
	if len(without(ending(p.files, ".py"), p.later)) == 0 {
		return []Validator{{Name: "mypy", Skip: "there are no Python files to check yet"}}
	}
	argv := p.pyTool(ctx, "mypy")
	for _, f := range ending(p.later, ".py") {
		argv = append(argv, "--exclude", "(^|/)"+regexp.QuoteMeta(f)+"$")
	}
	if !mypyTargets().MatchString(conf) {
		argv = append(argv, ".")
	}
	return []Validator{{Name: "mypy", Argv: argv, Env: []string{noBytecode, "MYPY_CACHE_DIR=" + os.DevNull}}}
}

// noTests is pytest's exit code for having collected none.
const noTests = 5

// pytest runs the acceptance tests of this and earlier tasks, and the rest of the suite without later tasks' tests.
// These are two runs, because acceptance tests run even if the project's configuration excludes them.
func pytest(ctx context.Context, p *layout) []Validator {
	required := ending(p.required(), ".py")
	suite := slices.ContainsFunc(without(without(p.files, p.later), required), isPytestFile)
	if len(required) == 0 && !suite {
		return nil
	}
	argv := p.pyTool(ctx, "pytest")
	v := Validator{Name: "pytest", Env: []string{noBytecode}, runner: project.ByName(project.Python).Runner("pytest")}
	v.plain = len(argv) == 1
	// One file that cannot be imported must not hide the results of the others.
	argv = append(argv, "-q", "--color=no", "--continue-on-collection-errors", "--rootdir=.")
	var vs []Validator
	if len(required) > 0 {
		given := v
		given.Argv, given.given = slices.Clone(argv), pythonGiven(required)
		for _, f := range required {
			given.Argv = append(given.Argv, dashless(f))
		}
		vs, v.Name = append(vs, given), rest("pytest")
	}
	if suite {
		for _, f := range slices.Concat(ending(p.later, ".py"), required) {
			argv = append(argv, "--ignore="+f)
		}
		v.Argv, v.nothing = argv, noTests
		vs = append(vs, v)
	}
	return vs
}

func pythonGiven(files []string) []given {
	var out []given
	for _, f := range files {
		out = append(out, given{f, dotted(f)})
	}
	return out
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

// without returns files but for those in out.
func without(files, out []string) []string {
	return slices.DeleteFunc(slices.Clone(files), func(f string) bool { return slices.Contains(out, f) })
}
