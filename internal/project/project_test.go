package project

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// TestIsBuilt: a directory called target is a product only next to a Cargo.toml.
func TestIsBuilt(t *testing.T) {
	tree := func(file string) bool { return file == "crates/a/Cargo.toml" }
	if !IsBuilt("crates/a/target", tree) || IsBuilt("target", tree) || IsBuilt("crates/a/src", tree) {
		t.Error("which directories Cargo makes")
	}
	top := t.TempDir()
	if IsBuilt("bin", OnDisk(top)) {
		t.Error("bin is a product of every project")
	}
	if err := os.WriteFile(filepath.Join(top, "x.csproj"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !IsBuilt("bin", OnDisk(top)) || IsBuilt("bin/x", OnDisk(top)) {
		t.Error("which directories dotnet makes")
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
		// A mere runner of tests installs and builds nothing.
		if k.Name == "" || len(k.Manifests) == 0 && k.Name != "all" {
			t.Errorf("%+v lacks a fact", k)
		}
		for _, l := range k.Locks {
			if l.Setup != "" && l.Program == "" {
				t.Errorf("%s: no program that installs by it", l.File)
			}
		}
	}
}

func TestConfigures(t *testing.T) {
	for file, want := range map[string]bool{"conftest.py": true, "a/b/pytest.ini": true, "package.json": true,
		"GNUmakefile": true, "Conftest.py": true, "PyProject.toml": true,
		"Cargo.toml": true, "Taskfile.yml": true, "src/__mocks__/fs.js": true,
		".cargo/config.toml": true, "web/vite.config.mts": true, ".mocharc.jsonc": true, ".nvmrc": true,
		"vite.config": false, "config.mts": false, ".*": false, "go.mod": false, "src/main.rs": false,
		"requirements.txt": false} {
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

// TestDocs: docs/validators.md names the manifests and the commands of each kind.
func TestDocs(t *testing.T) {
	data, err := os.ReadFile("../../docs/validators.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range Kinds {
		for _, m := range k.Manifests {
			if name := strings.TrimSuffix(m, ".kts"); len(k.Checks) > 0 && !strings.EqualFold(name, "makefile") &&
				!strings.Contains(string(data), "`"+name+"`") && name != "GNUmakefile" && name != "Justfile" {
				t.Errorf("%s: %s is missing", k.Name, m)
			}
		}
		for _, c := range k.Checks {
			if !strings.Contains(string(data), strings.Fields(c.Run)[0]) {
				t.Errorf("%s: %s is missing", k.Name, c.Run)
			}
		}
	}
}

func TestIsTest(t *testing.T) {
	for file, want := range map[string]bool{"tests/test_a.py": true, "a_test.go": true, "src/a.spec.ts": true,
		"__tests__/a.js": true, "tests/a.rs": true, "tests/all.sh": true, "cli/add.bats": true,
		"spec/add_spec.rb": true, "run.sh": false, "latest.py": false,
		"src/__snapshots__/a.test.js.snap": true, "testdata/help.golden": true, "e2e/a.ts-snapshots/home.png": true,
		"docs/snapshots.md": false, "tests/data.txt": false, "contest.go": false} {
		if IsTest(file) != want {
			t.Errorf("%s: %v", file, !want)
		}
	}
}
