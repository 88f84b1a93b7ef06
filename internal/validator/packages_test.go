package validator

import (
	"context"
	"strings"
	"testing"
)

// TestPackages: a package with tests is checked in its own directory. A change needs the packages that it touches and
// those that depend on them.
func TestPackages(t *testing.T) {
	node := func(name, dependencies string) string {
		return `{"name": "` + name + `", "scripts": {"test": "node --test"}, "dependencies": {` + dependencies + `}}`
	}
	for name, c := range map[string]struct {
		files   map[string]string
		changed []string
		all     string // checks without a change, by name
		some    string // checks for the change
	}{
		"npm workspaces": {map[string]string{
			"package.json":               `{"private": true, "workspaces": ["packages/*"], "scripts": {"build": "true"}}`,
			"packages/core/package.json": node("@x/core", ""), "packages/core/a.test.js": "",
			"packages/app/package.json": node("@x/app", `"@x/core": "*"`), "packages/app/a.test.js": "",
			"packages/cli/package.json": node("@x/cli", `"@x/app": "*"`), "packages/cli/a.test.js": "",
			"packages/docs/package.json": node("@x/docs", `"core-js": "3"`), "packages/docs/a.test.js": "",
			"packages/types/package.json":  `{"type": "module"}`,
			"fixtures/broken/package.json": node("broken", ""),
		}, []string{"packages/core/index.js"},
			"npm test (packages/app), npm test (packages/cli), npm test (packages/core), npm test (packages/docs)",
			"npm test (packages/app), npm test (packages/cli), npm test (packages/core)"},
		"through a package without tests": {map[string]string{
			"core/package.json": node("@x/core", ""), "core/a.test.js": "",
			"mid/package.json": `{"name": "@x/mid", "dependencies": {"@x/core": "*"}}`,
			"app/package.json": node("@x/app", `"@x/mid": "*"`), "app/a.test.js": "",
			"docs/package.json": node("@x/docs", ""), "docs/a.test.js": "",
		}, []string{"core/index.js"}, "npm test (app), npm test (core), npm test (docs)",
			"npm test (app), npm test (core)"},
		"a lock file": {map[string]string{"a/package.json": node("a", ""), "a/a.test.js": "",
			"b/package.json": node("b", ""), "b/b.test.js": ""}, []string{"a/x.js", "package-lock.json"},
			"npm test (a), npm test (b)", "npm test (a), npm test (b)"},
		"a script for all": {map[string]string{
			"package.json":   `{"workspaces": ["a"], "scripts": {"test": "npm test --workspaces"}}`,
			"a/package.json": node("a", ""), "a/a.test.js": ""}, nil, "npm test", "npm test"},
		"beside a root that sorts later": {map[string]string{"package.json": node("root", ""), "x.test.js": "",
			"client/package.json": node("client", ""), "client/x.test.js": ""}, []string{"client/a.js"},
			"npm test, npm test (client)", "npm test, npm test (client)"},
		"go.work": {map[string]string{
			"go.work":         "go 1.21\nuse (\n./core\n./app\n./tool\n)\n",
			"core/go.mod":     "module example.com/x/core\n",
			"core/core.go":    "package core\n",
			"app/go.mod":      "module example.com/x/app\n",
			"app/app.go":      "package app\n\nimport _ \"example.com/x/core/sub\"\n",
			"tool/go.mod":     "module example.com/x/tool\n",
			"tool/tool.go":    "package tool\n",
			"core/sub/sub.go": "package sub\n",
		}, []string{"core/core.go"},
			"go vet (app), go test (app), go vet (core), go test (core), go vet (tool), go test (tool)",
			"go vet (app), go test (app), go vet (core), go test (core)"},
		"python": {map[string]string{
			"libs/core/pyproject.toml": "[project]\nname = \"my-core\"\n", "libs/core/tests/test_a.py": "",
			"services/api/pyproject.toml":  "[project]\nname = \"api\"\ndependencies = [\"my-core>=1\"]\n",
			"services/api/tests/test_a.py": "",
			"services/web/pyproject.toml":  "[project]\nname = \"web\"\n",
			"services/web/test_a.py":       "from my_core_x import y\n",
			"app/requirements.txt":         "", "app/__init__.py": "", "app/test_x.py": "",
		}, []string{"libs/core/my_core.py"},
			"pytest, pytest (libs/core), pytest (services/api), pytest (services/web)",
			"pytest, pytest (libs/core), pytest (services/api)"},
		"tools of python packages": {map[string]string{
			"libs/core/pyproject.toml":    "[tool.ruff.lint]\nselect = ['E']\n[tool.mypy]\nstrict = true\n",
			"libs/core/a.py":              "",
			"services/web/pyproject.toml": "[tool.pyright]\n", "services/web/a.py": "",
			"services/api/mypy.ini": "[mypy]\n", "services/api/a.py": "", "services/api/requirements.txt": "",
		}, []string{"libs/core/a.py"},
			"pyright (services/web), ruff (libs/core), mypy (libs/core), mypy (services/api)",
			"ruff (libs/core), mypy (libs/core)"},
		"one ruff for all python packages": {map[string]string{
			"pyproject.toml": "[tool.ruff]\n[tool.mypy]\n", "a/pyproject.toml": "[tool.ruff]\n", "a/a.py": "",
		}, []string{"a/a.py"}, "ruff, mypy", "ruff, mypy"},
		"cargo": {map[string]string{
			"Cargo.toml":    "[workspace]\nmembers = [\"a\"]\n",
			"a/Cargo.toml":  "[package]\nname = \"a\"\n",
			"a/src/lib.rs":  "",
			"one/x.py":      "",
			"one/notes.txt": "",
		}, nil, "cargo test", "cargo test"},
		"cargo without a workspace": {map[string]string{
			"core/Cargo.toml": "[package]\nname = \"core\"\n", "core/src/lib.rs": "",
			"app/Cargo.toml": "[package]\nname = \"app\"\n[dependencies]\nother = { path = \"../core\" }\n",
			"app/src/lib.rs": "",
			"cli/Cargo.toml": "[package]\nname = \"cli\"\n", "cli/src/main.rs": "",
		}, []string{"core/src/lib.rs"}, "cargo test (app), cargo test (cli), cargo test (core)",
			"cargo test (app), cargo test (core)"},
	} {
		in := ExecEnv{Dir: tree(t, c.files), Env: []string{"PATH=" + stubs(t, strings.Fields(
			"npm node go cargo pytest ruff mypy pyright")...)}}
		for _, want := range []struct {
			changed []string
			names   string
		}{{nil, c.all}, {c.changed, c.some}} {
			vs := Detect(context.Background(), in, nil, Tasks{Changed: want.changed})
			if got := names(vs); got != want.names {
				t.Errorf("%s: a change of %q is checked by %s, want %s", name, want.changed, got, want.names)
			}
		}
	}
}

// TestPackageWithTests runs the checks of packages: a later task's test, and one of the same name in another package.
func TestPackageWithTests(t *testing.T) {
	dir := tree(t, map[string]string{
		"a/pyproject.toml": "[project]\nname = 'a'\n", "a/mod.py": "X = 1\n",
		"a/test_mod.py":       "import mod\n\ndef test_x():\n    assert mod.X == 1\n",
		"a/test_t001_x.py":    "import mod\n\ndef test_x():\n    assert mod.X == 1\n",
		"a/test_t002_y.py":    "import nothing\n",
		"b/pyproject.toml":    "[project]\nname = 'b'\n",
		"b/mod.py":            "X = 2\n",
		"b/tests/conftest.py": "",
		"b/test_mod.py":       "import mod\n\ndef test_x():\n    assert mod.X == 2\n",
	})
	if p := survey(ExecEnv{Dir: dir}, nil, Tasks{}); !hasPytest(p) {
		t.Skip("pytest is not installed")
	}
	rep := judge(t, dir, Tasks{Current: "T-001", All: three, Changed: []string{"a/mod.py"}})
	wantPassed(t, rep, true)
	wantText(t, rep, "## pytest (a): passed, 1 of 1 test", "## pytest (a) (suite): passed, 1 of 1 test")
	rep = judge(t, dir, Tasks{Current: "T-001", All: three})
	wantPassed(t, rep, true)
	wantText(t, rep, "## pytest (b): passed, 1 of 1 test")
	put(t, dir, "b/mod.py", "X = 3\n")
	wantPassed(t, judge(t, dir, Tasks{Current: "T-001", All: three}), false)
}
