package validator

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/packages"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/text"
)

// obstacle is a reason that prevents a validator's start. A line that matches one of the signs names a missing program
// or module. fix returns the command that installs it, or "", and false if it is the work of a task.
type obstacle struct {
	signs []pattern.Regexp
	fix   func(p *layout, s Scene, v Validator, res Result, missing string) (command string, ok bool)
}

var obstacles = []obstacle{{
	signs: []pattern.Regexp{
		pattern.New(`No such file or directory: '([^']+)'`), pattern.New(`ENOENT: no such file or directory, \w+ '([^']+)'`),
		pattern.New(`(?:cannot open|can't open file) '?([^':]+)'?:`), pattern.New(`open ([^:]+): no such file or directory`),
		pattern.New(`([\w@.+/-]+): (?:not found|No such file or directory)`),
	},
	fix: copiedFile,
}, {
	signs: []pattern.Regexp{
		pattern.New(`([\w@.+/-]+): (?:command )?not found`),
		pattern.New(`Cannot find (?:module|package) '([^'./][^']*)'`),
	},
	fix: nodeModule,
}, {
	signs: []pattern.Regexp{
		pattern.New(`(\.?venv/bin/[\w.-]+): (?:not found|No such file)`),
		pattern.New(`No module named '?([\w]+)`), pattern.New(`error: unrecognized arguments: (--[\w-]+)`),
	},
	fix: pythonModule,
}, {signs: []pattern.Regexp{pattern.New(`(?:^|[\s:])([\w.~-]+(?:/[\w.~-]+)+)@v\d[\w.+-]*: `)}, fix: goModule}, {
	signs: []pattern.Regexp{pattern.New(`^go: (go\.(?:mod|work)) requires go >= `)},
	fix:   func(_ *layout, _ Scene, v Validator, _ Result, _ string) (string, bool) { return "", !v.Configured },
}, {
	signs: []pattern.Regexp{
		pattern.New("(?:failed to (?:get|load source for dependency|download)|no matching package named) `([^`]+)`"),
	},
	fix: func(p *layout, s Scene, v Validator, _ Result, _ string) (string, bool) {
		dir, ok := p.home(v, "Cargo.toml")
		return s.Setting.Add(p.install(project.Rust, dir)), ok
	},
}}

var (
	unreadable = pattern.New(`(?i)not found|no such file|denied|can't|cannot`)
	absolute   = pattern.New(`/[^\s'"` + "`" + `:;,()<>\[\]]+`)
)

// closedFile returns the line of an output about a file that the sandbox closes, and the command that opens the file.
func closedFile(output string, box *sandbox.Box) (line, fix string) {
	for line := range strings.Lines(output) {
		if !unreadable().MatchString(line) {
			continue
		}
		for _, path := range absolute().FindAllString(line, -1) {
			switch fix = "git config --add tilth.sandboxRead " + text.ShellQuote(path); {
			case box.Secret(path):
				return clipped(line) + " (the sandbox opens no credentials)", ""
			case box.Closes(path):
				return clipped(line) + " (the sandbox closes it)", fix
			}
		}
	}
	return "", ""
}

var programMissing = pattern.New("(?:^|[\\s:])([\\w.+-]+): (?:command )?not found(?: in|;|$)|" +
	"['`‘]([\\w.+-]+)['`’](?:: No such file or directory| (?:was )?not found| is not installed)|" +
	"([\\w.+-]+): bad interpreter")

// MissingProgram returns the line of an output that names a missing program, and a command that succeeds once the
// program is installed.
func MissingProgram(output string) (line, fix string) {
	for line := range strings.Lines(output) {
		m := programMissing().FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		name := m[1] + m[2] + m[3]
		if _, err := exec.LookPath(name); err != nil {
			return clipped(line) + " (install " + name + ")", "command -v " + name
		}
	}
	return "", ""
}

// Hindered returns the line of a hook's output that explains why the hook fails for every change, with the command
// that helps, or "". The line is "" if the change may be the reason.
func Hindered(output string, box *sandbox.Box) (line, fix string) {
	if line, fix = closedFile(output, box); line == "" {
		line, fix = MissingProgram(output)
	}
	for tty := range strings.Lines(output) {
		if line == "" && strings.Contains(tty, "/dev/tty") {
			line = clipped(tty) + " (no hook has a terminal in a run)"
		}
	}
	return line, fix
}

// clipped returns a line of output as it is shown.
func clipped(line string) string { return text.Clip(text.VisibleLine(strings.TrimSpace(line)), 300) }

// home returns the directory of a validator's manifest.
func (p *layout) home(v Validator, manifests ...string) (dir string, ok bool) {
	for _, m := range manifests {
		if p.Exists(path.Join(v.Dir, m)) {
			return path.Clean(v.Dir), true
		}
	}
	for _, m := range manifests {
		if tops := packages.Outermost(p.DirsOf(m)); len(tops) > 0 {
			return tops[0], true
		}
	}
	return ".", false
}

// copiedFile handles an ignored file that the user's checkout has and the tree does not.
func copiedFile(p *layout, s Scene, v Validator, _ Result, missing string) (string, bool) {
	file := missing
	if !filepath.IsAbs(file) {
		file = filepath.Join(p.Root, v.Dir, missing)
	}
	rel, err := filepath.Rel(p.Root, file)
	if err != nil || s.Ignored == nil || !filepath.IsLocal(rel) || !s.Ignored(rel) {
		return "", false
	}
	_, absent := os.Lstat(file)
	return "git config --add tilth.copy " + text.ShellQuote(rel), absent != nil
}

// nodeModule handles a package of package.json, or a program if nothing is installed.
func nodeModule(p *layout, s Scene, v Validator, res Result, missing string) (string, bool) {
	dir, ok := p.home(v, "package.json")
	if !ok {
		return "", false
	}
	if nodeManager().FindString(missing) == missing {
		return "npm install --global " + missing, true
	}
	manifest := gjson.Parse(p.Read(path.Join(dir, "package.json")))
	dependencies := manifest.Get("dependencies").Raw + manifest.Get("devDependencies").Raw
	parts := strings.SplitN(missing, "/", 3)
	name := parts[0]
	if strings.HasPrefix(missing, "@") && len(parts) > 1 {
		name += "/" + parts[1]
	}
	declared := strings.Contains(missing, "node_modules/") || strings.Contains(dependencies, `"`+name+`"`)
	_, err := os.Stat(filepath.Join(p.Root, dir, "node_modules"))
	byNode := !v.Configured || nodeManager().MatchString(v.Command)
	nothing := byNode && res.exit == 127 && err != nil && strings.Contains(dependencies, `"`)
	if !declared && !nothing {
		// The script names a program that no setup here installs.
		return "", !v.Configured && res.exit == 127 && hasWord(manifest.Get("scripts").Raw, missing)
	}
	return s.Setting.Add(p.install(project.Node, dir)), true
}

// nodeManager matches a command that finds the programs of node_modules.
var nodeManager = pattern.New(`\b(?:npm|npx|pnpm|yarn|bunx?)\b`)

// install returns the command that installs a project's dependencies and more modules in a directory, "" if unknown.
func (p *layout) install(name, dir string, more ...string) string {
	kind := project.ByName(name)
	lock, ok := p.Lock(kind, dir)
	switch ok = ok && lock.Setup != ""; {
	case ok && packages.Has(lock.Program, p.Root, p.Env):
		return packages.In(dir, lock.Setup)
	case ok && name == project.Node:
		return packages.In(dir, "npx --yes "+lock.Setup)
	case name == project.Python:
		return packages.In(dir, p.venv(dir, more...))
	case kind.Install == "":
		return ""
	}
	return packages.In(dir, kind.Install)
}

// pythonManifests list a Python project's dependencies.
var pythonManifests = project.ByName(project.Python).Manifests

// pythonModule handles a missing dependency of the project: its manifests name the module, or its code imports it. A
// module that only acceptance tests import may be a task's work.
func pythonModule(p *layout, s Scene, v Validator, _ Result, missing string) (string, bool) {
	dir, _ := p.home(v, pythonManifests...)
	other := strings.HasPrefix(missing, "--") || strings.Contains(missing, "/") // an option of a plugin, a program
	if !other && slices.ContainsFunc(p.Files, func(f string) bool {
		return strings.HasPrefix(f, missing+"/") || f == missing+".py"
	}) {
		return "", false
	}
	if other || p.names(missing) {
		return s.Setting.Add(p.install(project.Python, dir)), true
	}
	imports := regexp.MustCompile(`(?m)^\s*(?:import|from)\s+` + missing + `\b`)
	tests := slices.Concat(p.required(), p.later)
	for _, f := range packages.Ending(p.Files, ".py") {
		if !slices.Contains(tests, f) && imports.MatchString(p.Read(f)) {
			return s.Setting.Add(p.install(project.Python, dir, missing)), true
		}
	}
	return "", false
}

// names reports whether a manifest of the project names a module as a dependency.
func (p *layout) names(module string) bool {
	word := strings.ReplaceAll(regexp.QuoteMeta(module), "_", "[-_.]")
	entry := regexp.MustCompile(`(?i)(?:^|["'])\s*` + word + `\s*(?:$|["'\[<>=!~;@ ])`)
	own := regexp.MustCompile(`^\s*name\s*=`)
	for _, f := range p.Files {
		base := path.Base(f)
		if !project.Named(base, append(pythonManifests, requirements)...) {
			continue
		}
		for line := range strings.Lines(p.Read(f)) {
			if line = strings.TrimSpace(line); !own.MatchString(line) && entry.MatchString(line) {
				return true
			}
		}
	}
	return false
}

const requirements = "requirements*.txt"

// venv returns the command for a virtual environment where the detected checks look for it.
func (p *layout) venv(dir string, more ...string) string {
	args := "pytest"
	for _, f := range packages.Below(p.Files, dir) {
		if project.Named(f, requirements) {
			args += " -r " + text.ShellQuote(f)
			more = nil
		}
	}
	if p.Exists(path.Join(dir, "pyproject.toml")) || p.Exists(path.Join(dir, "setup.py")) {
		args += " -e ."
		more = nil
	}
	args = strings.Join(append([]string{args}, more...), " ")
	return "python3 -m venv --system-site-packages .venv && .venv/bin/pip install " + args
}

// goModule handles a module that go.mod requires.
func goModule(p *layout, s Scene, v Validator, _ Result, missing string) (string, bool) {
	dir, ok := p.home(v, "go.mod")
	return s.Setting.Add(p.install(project.Go, dir)), ok && strings.Contains(p.Read(path.Join(dir, "go.mod")), missing)
}
