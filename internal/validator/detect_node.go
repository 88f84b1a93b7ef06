package validator

import (
	"context"
	"encoding/json"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/text"
)

// nodeExts are the endings of files that may hold tests.
var nodeExts = []string{".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"}

// nodePackage is one package.json and the tests below it.
type nodePackage struct {
	dir     string
	scripts map[string]string
	manager []string // the command line that runs the test script

	all, current, required, later []string // relative to dir
}

// managers are the ways to run a package's tests and to install what it needs, by its lock file.
var managers = []struct{ lock, test, install string }{
	{"package-lock.json", "npm test --", "npm ci"}, {"npm-shrinkwrap.json", "npm test --", "npm ci"},
	{"pnpm-lock.yaml", "pnpm test", "pnpm install --frozen-lockfile"},
	{"yarn.lock", "yarn test", "yarn install --frozen-lockfile"},
	{"bun.lock", "bun run test", "bun install --frozen-lockfile"},
	{"bun.lockb", "bun run test", "bun install --frozen-lockfile"},
}

// node runs the test script of every package that is not inside another one.
func node(_ context.Context, p *project) []Validator {
	dirs := p.tops("package.json")
	if len(dirs) == 0 && len(ending(p.current, nodeExts...)) > 0 {
		dirs = []string{"."}
	}
	var vs []Validator
	for _, dir := range dirs {
		v := p.nodePackage(dir).validator()
		if v.Name == "" {
			continue
		}
		v.Dir = dir
		v.Env = append(v.Env, "CI=true", "NO_COLOR=1",
			"PATH="+joinPath(filepath.Join(p.root, dir, "node_modules", ".bin"), proc.Getenv(p.env, "PATH")))
		vs = append(vs, v)
	}
	return vs
}

func (p *project) nodePackage(dir string) nodePackage {
	n := nodePackage{dir: dir}
	var manifest struct {
		Scripts map[string]string `json:"scripts"`
	}
	// A damaged package.json has no scripts; the test runner says what is wrong with it.
	_ = json.Unmarshal([]byte(p.read(path.Join(dir, "package.json"))), &manifest)
	n.scripts = manifest.Scripts
	n.all = below(ending(p.files, nodeExts...), dir)
	n.current = below(ending(p.current, nodeExts...), dir)
	n.required = below(ending(p.required(), nodeExts...), dir)
	n.later = below(ending(p.later, nodeExts...), dir)

	n.manager = []string{"npm", "test", "--"}
	for _, m := range managers {
		if argv := strings.Fields(m.test); p.exists(path.Join(dir, m.lock)) && has(argv[0], p.root, p.env) {
			n.manager = argv
		}
	}
	return n
}

// runner is a test runner that can be told which tests to run or to leave out.
type runner struct {
	match pattern.Regexp // on the last command of the test script
	only  func(files []string) []string
	but   func(files []string) []string
}

func each(flag string) func([]string) []string {
	return func(files []string) []string {
		var out []string
		for _, f := range files {
			out = append(out, flag, f)
		}
		return out
	}
}

// runners is the table of those that take arguments after the script's own.
var runners = []runner{{
	match: pattern.New(`(^|[\s/])(jest(\.js)?|react-scripts test)(\s|$)`),
	only:  func(files []string) []string { return append([]string{"--runTestsByPath"}, files...) },
	but: func(files []string) []string {
		out := []string{"--testPathIgnorePatterns", "/node_modules/"}
		for _, f := range files {
			out = append(out, "/"+regexp.QuoteMeta(f)+"$")
		}
		return out
	},
}, {
	match: pattern.New(`(^|[\s/])vitest(\s|$)`),
	only:  slices.Clone[[]string],
	but:   each("--exclude"),
}, {match: pattern.New(`(^|[\s/])mocha(\s|$)`), but: each("--ignore")}}

var (
	nodeTest  = pattern.New(`^(?:\w+=\S+\s+)*(?:cross-env\s+(?:\w+=\S+\s+)*)?(?:node|tsx)\s(?:.*\s)?--test(?:\s|$)`)
	noTestYet = pattern.New(`no test specified`)
)

// validator is the check of one package; one without a name if it has none.
func (n nodePackage) validator() Validator {
	script := strings.TrimSpace(n.scripts["test"])
	if script == "" || noTestYet().MatchString(script) {
		return n.bare()
	}
	name := at(n.manager[0]+" test", n.dir)
	plain := Validator{Name: name, Argv: slices.DeleteFunc(slices.Clone(n.manager),
		func(a string) bool { return a == "--" })}
	if len(n.current) == 0 && len(n.later) == 0 {
		return plain
	}
	before, last := lastCommand(script)
	if nodeTest().MatchString(last) {
		if command, ok := n.nodeTest(before, last); ok {
			return Validator{Name: name, Command: command}
		}
		return Validator{Name: name, Skip: "there are no tests to run yet"}
	}
	for _, r := range runners {
		if !r.match().MatchString(last) || strings.ContainsAny(last, "|;<>`&\n") {
			continue
		}
		switch {
		case len(n.current) > 0 && r.only != nil:
			return Validator{Name: name, Argv: slices.Concat(n.manager, r.only(n.required))}
		case len(n.later) > 0:
			return Validator{Name: name, Argv: slices.Concat(n.manager, r.but(n.later))}
		}
	}
	if len(n.later) > 0 {
		plain.remark = "the acceptance tests of later tasks may be among those that failed: " +
			"this test script gives no known way to leave them out: " + script
	}
	return plain
}

// bare is the check of a package without a test script: acceptance tests that
// node runs by itself.
func (n nodePackage) bare() Validator {
	if len(n.current) == 0 {
		return Validator{}
	}
	files := ending(n.required, ".js", ".mjs", ".cjs")
	if len(files) == 0 {
		why := "package.json has no test script that would run the acceptance tests"
		return Validator{Name: at("npm test", n.dir), Skip: why}
	}
	return Validator{Name: at("node --test", n.dir), Argv: append([]string{"node", "--test"}, files...)}
}

// lastCommand splits `a && b && c` before the last command: arguments to a script
// go to that one.
func lastCommand(script string) (before, last string) {
	if i := strings.LastIndex(script, "&&"); i >= 0 {
		return script[:i+2] + " ", strings.TrimSpace(script[i+2:])
	}
	return "", script
}

// nodeValued are options of node that take the next word as their value.
var nodeValued = []string{"--import", "--require", "-r", "--loader", "--experimental-loader", "--test-reporter",
	"--test-reporter-destination", "--test-name-pattern", "--conditions", "-C", "--env-file", "--test-concurrency",
	"--test-timeout", "--tsconfig"}

// nodeTest is a test script on node's own runner with the files to run in place
// of its own. It runs what npm runs around it, too.
func (n nodePackage) nodeTest(before, last string) (command string, ok bool) {
	words := strings.Fields(last)
	var kept, own []string
	program := false
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case !program:
			program = w == "node" || w == "tsx"
			kept = append(kept, w)
		case strings.HasPrefix(w, "-"):
			kept = append(kept, w)
			if slices.Contains(nodeValued, w) && i+1 < len(words) {
				i++
				kept = append(kept, words[i])
			}
		default:
			own = append(own, strings.Trim(w, `"'`))
		}
	}
	files := n.required
	if len(n.current) == 0 {
		files = without(n.tests(own), n.later)
	}
	if len(files) == 0 {
		return "", false
	}
	command = before + strings.Join(kept, " ") + " " + text.ShellQuote(files...)
	if n.scripts["pretest"] != "" {
		command = n.manager[0] + " run pretest && " + command
	}
	return command, true
}

// byName matches what node's runner takes for a test when it is given no files.
var byName = pattern.New(`^(?:test|test-.+|.+[._-]test)\.[cm]?[jt]s$`)

// tests are the files that a test script on node's runner would run.
func (n nodePackage) tests(own []string) []string {
	return slices.DeleteFunc(slices.Clone(n.all), func(f string) bool {
		if len(own) == 0 {
			inTest := slices.Contains(strings.Split(path.Dir(f), "/"), "test")
			return !inTest && !byName().MatchString(path.Base(f))
		}
		return !slices.ContainsFunc(own, func(pattern string) bool { return covers(pattern, f) })
	})
}

// covers reports whether a file, a directory or a pattern in a test script stands for a file.
func covers(pattern, file string) bool {
	pattern = path.Clean(pattern)
	if pattern == "." || file == pattern || strings.HasPrefix(file, pattern+"/") {
		return true
	}
	ok, err := doublestar.Match(pattern, file)
	return err == nil && ok
}
