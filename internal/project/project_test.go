package project

import (
	"path/filepath"
	"slices"
	"testing"
)

func TestIsLock(t *testing.T) {
	for file, want := range map[string]bool{
		"package-lock.json": true, "app/yarn.lock": true, "requirements.txt": true, "requirements-dev.txt": true,
		"go.sum": true, "Gemfile.lock": true, "package.json": false, "requirements.in": false, "lock": false,
	} {
		if IsLock(file) != want {
			t.Errorf("%s: %v, want %v", file, !want, want)
		}
	}
}

// TestIsBuilt: a directory called target is a product only beside a Cargo.toml.
func TestIsBuilt(t *testing.T) {
	tree := func(file string) bool { return file == "crates/a/Cargo.toml" }
	if !IsBuilt("crates/a/target", tree) || IsBuilt("target", tree) || IsBuilt("crates/a/src", tree) {
		t.Error("which directories Cargo makes")
	}
}

// TestCachePath: variables move a cache, directly or with its parent directory.
func TestCachePath(t *testing.T) {
	env := map[string]string{"HOME": "/home/u", "GOPATH": "/g:/h", "UV_CACHE_DIR": "/uv"}
	var got []string
	for _, k := range Kinds {
		for _, c := range k.Caches {
			got = append(got, c.Path(func(name string) string { return env[name] }))
		}
	}
	for _, want := range []string{"/g/pkg/mod", "/uv", "/home/u/.npm", "/home/u/.cargo/registry"} {
		if !slices.Contains(got, filepath.FromSlash(want)) {
			t.Errorf("%s is not among %q", want, got)
		}
	}
}

// TestTable checks the required fields of each row.
func TestTable(t *testing.T) {
	for _, k := range Kinds {
		if k.Name == "" || len(k.Manifests) == 0 { // a mere runner of tests installs and builds nothing
			t.Errorf("%+v lacks a fact", k)
		}
		for _, l := range k.Locks {
			if l.Setup != "" && l.Program == "" {
				t.Errorf("%s: no program that installs by it", l.File)
			}
		}
	}
}

// TestRestore: dependencies come from the change, the configuration of tests from the seed.
func TestRestore(t *testing.T) {
	for _, c := range []struct{ file, change, seed, want string }{
		{"pytest.ini", "[pytest]\naddopts = -k x\n", "[pytest]\n", "[pytest]\n"},
		{"pyproject.toml", "[project]\nname = 'a'\ndependencies = ['b']\n[tool.pytest.ini_options]\naddopts = 'x'\n",
			"[project]\nname = 'a'\n[tool.pytest.ini_options]\nmarkers = ['y']\n",
			"[project]\nname = 'a'\ndependencies = ['b']\n[tool.pytest.ini_options]\nmarkers = ['y']\n"},
		{"pyproject.toml", "[project]\nname = 'a'\ndependencies = ['b']\n", "[project]\nname = 'a'\n",
			"[project]\nname = 'a'\ndependencies = ['b']\n"},
		{"pyproject.toml", "[tool.pytest.ini_options]\naddopts = 'x'\n", "", ""},
		{"pyproject.toml", "tool.pytest.ini_options.addopts = [\n  'x=y',\n]\na = 1\n" +
			"[ tool . 'pytest' ]\nb = 2\n[tool]\n" +
			"\"pyt\\u0065st\".c = 3\nother.d = 4\n", "tool.ruff = {}\n[x]\n",
			"tool.ruff = {}\na = 1\n[tool]\nother.d = 4\n"},
		{"setup.cfg", "[metadata]\nname = a\n[tool:pytest]\naddopts = x\n[x]\ny = 1\n", "",
			"[metadata]\nname = a\n[x]\ny = 1\n"},
		{"package.json", `{"scripts": {"test": "true"}, "dependencies": {"a": "1"}}`, `{"scripts": {"test": "jest"}}`,
			"{\n  \"dependencies\": {\n    \"a\": \"1\"\n  },\n  \"scripts\": {\n    \"test\": \"jest\"\n  }\n}\n"},
		{"package.json", `{"scripts": {"test":"jest"}, "x": 1}`, `{"scripts": {"test":"jest"}}`,
			`{"scripts": {"test":"jest"}, "x": 1}`},
		{"package.json", `{`, `{"scripts": {"test": "jest"}}`, `{"scripts": {"test": "jest"}}`},
		{"Cargo.toml", "[package]\nname = 'a'\nautotests = false\n[dependencies]\nb = '1'\n", "[package]\nname = 'a'\n",
			"[dependencies]\nb = '1'\n[package]\nname = 'a'\n"},
	} {
		if got := string(Restore("x/"+c.file, []byte(c.change), []byte(c.seed))); got != c.want {
			t.Errorf("%s: got %q, want %q", c.file, got, c.want)
		}
	}
}

func TestConfigures(t *testing.T) {
	for file, want := range map[string]bool{"conftest.py": true, "a/b/pytest.ini": true, "package.json": true,
		".cargo/config.toml": true, "go.mod": false, "src/main.rs": false, "requirements.txt": false} {
		if Configures(file) != want {
			t.Errorf("%s: %v", file, !want)
		}
	}
	for _, source := range []string{"func TestMain(m *testing.M) {", "func  TestMain /* */ (", "func/**/TestMain("} {
		if !IsLoaded("a_test.go", []byte(source)) || IsLoaded("a.go", []byte(source)) {
			t.Errorf("a runner runs %q by itself, and only in a test file", source)
		}
	}
	if IsLoaded("a_test.go", []byte("func TestMainWindow(t *testing.T) {")) {
		t.Error("a test is run because its file is asked for")
	}
}

func TestIsTest(t *testing.T) {
	for file, want := range map[string]bool{"tests/test_a.py": true, "a_test.go": true, "src/a.spec.ts": true,
		"__tests__/a.js": true, "tests/a.rs": true, "tests/all.sh": true, "cli/add.bats": true,
		"spec/add_spec.rb": true, "run.sh": false, "latest.py": false, "tests/data.txt": false, "contest.go": false} {
		if IsTest(file) != want {
			t.Errorf("%s: %v", file, !want)
		}
	}
}
