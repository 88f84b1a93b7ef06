package loop

import "testing"

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
		{"setup.cfg", "[metadata]\rname = a\r[tool:pytest]\raddopts = x\r", "[metadata]\r\nname = a\r\n",
			"[metadata]\r\nname = a\r\n"},
		{"package.json", `{"scripts": {"test": "true"}, "dependencies": {"a": "1"}}`, `{"scripts": {"test": "jest"}}`,
			"{\n  \"dependencies\": {\n    \"a\": \"1\"\n  },\n  \"scripts\": {\n    \"test\": \"jest\"\n  }\n}\n"},
		{"package.json", `{"scripts": {"test":"jest"}, "x": 1}`, `{"scripts": {"test":"jest"}}`,
			`{"scripts": {"test":"jest"}, "x": 1}`},
		{"package.json", `{`, `{"scripts": {"test": "jest"}}`, `{"scripts": {"test": "jest"}}`},
		{"Cargo.toml", "[package]\nname = 'a'\nautotests = false\n[dependencies]\nb = '1'\n", "[package]\nname = 'a'\n",
			"[dependencies]\nb = '1'\n[package]\nname = 'a'\n"},
	} {
		if got := string(restoreConfig("x/"+c.file, []byte(c.change), []byte(c.seed))); got != c.want {
			t.Errorf("%s: got %q, want %q", c.file, got, c.want)
		}
	}
}
