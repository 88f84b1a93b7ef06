package project

import (
	"slices"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// scriptExts are the endings of configuration that node loads as code.
const scriptExts = ".js .cjs .mjs .ts .cts .mts"

// versions are files by which version managers choose the program that a name stands for, some of them by its path.
var versions = []string{".tool-versions", "mise.toml", ".mise.toml", ".mise", ".prototools", ".python-version",
	".node-version", ".nvmrc", ".go-version"}

// Venvs are the usual names of a virtual environment.
var Venvs = []string{".venv", "venv"}

// Kinds are the kinds of projects that are known, in the order in which their checks run.
var Kinds = []Kind{{
	Name:      Python,
	Manifests: []string{"pyproject.toml", "requirements.txt", "setup.py", "setup.cfg", "Pipfile"},
	Code:      []string{".py"},
	Runners:   []Runner{{Name: "pytest", Format: JUnit, Report: []string{"--junitxml=" + ReportFile}}},
	Config: []string{"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "conftest.py", "ruff.toml",
		".ruff.toml", "mypy.ini", ".mypy.ini", ".coveragerc", "sitecustomize.py", "usercustomize.py",
		"entry_points.txt"},
	Sections: map[string][]string{
		"pyproject.toml": {"tool.pytest", "tool.ruff", "tool.mypy", "tool.coverage", "project.entry-points",
			"tool.poetry.plugins"},
		"setup.cfg": {"tool:pytest", "mypy", "coverage", "options.entry_points"},
	},
	Locks: []Lock{
		{File: "uv.lock", Program: "uv", Setup: "uv sync --frozen"},
		{File: "poetry.lock", Program: "poetry",
			Setup: "POETRY_VIRTUALENVS_IN_PROJECT=1 poetry install --no-interaction"},
		{File: "pdm.lock", Program: "pdm"}, {File: "Pipfile.lock", Program: "pipenv"}, {File: "requirements*.txt"},
	},
	Caches: []Cache{
		{Tool: "pip3", Moved: []string{"PIP_CACHE_DIR"}, In: userCache, Dir: "pip"},
		{Tool: "uv", Moved: []string{"UV_CACHE_DIR"}, In: xdgCache, Dir: "uv"},
		{Tool: "poetry", Moved: []string{"POETRY_CACHE_DIR"}, In: userCache, Dir: "pypoetry"},
	},
	Products: []string{"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".venv"},
	Foreign:  []string{"venv", ".tox", ".nox", ".eggs"},
}, {
	Name:      Go,
	Manifests: []string{"go.mod"},
	Code:      []string{".go"},
	Runners:   []Runner{{Name: "go test", Format: GoTest, Report: []string{"-json"}}},
	Config:    []string{"go.work"},
	Loaded:    pattern.New(`\bTestMain\b`),
	LoadedIn:  "_test.go",
	Locks:     []Lock{{File: "go.sum", Program: "go"}},
	Install:   "go mod download",
	Caches: []Cache{
		{Tool: "go", Moved: []string{"GOCACHE"}, In: userCache, Dir: "go-build"},
		{Tool: "go", Moved: []string{"GOMODCACHE"}, In: gopath, Dir: "pkg/mod"},
		{Tool: "go", In: gopath, Dir: "pkg/sumdb"},
	},
	Foreign: []string{"vendor"},
}, {
	Name:      Node,
	Manifests: []string{"package.json"},
	Code:      []string{".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"},
	Runners: []Runner{
		{Name: "node --test", Format: NodeLog, Report: []string{
			"--test-reporter=spec", "--test-reporter-destination=stdout",
			"--test-reporter=" + Reporter, "--test-reporter-destination=" + ReportFile}},
		{Name: "jest", Format: Jest, Report: []string{"--json", "--outputFile=" + ReportFile}},
		{Name: "vitest", Format: Jest, Report: []string{"--reporter=default", "--reporter=json",
			"--outputFile.json=" + ReportFile}},
		{Name: "mocha", Format: Mocha, Report: []string{"--reporter=json", "--reporter-option=output=" + ReportFile}},
	},
	Config: slices.Concat([]string{".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "pnpm-workspace.yaml",
		"bunfig.toml", ".babelrc", "tsconfig.json", ".nycrc"},
		endings("jest.config", scriptExts+" .json"), endings("vitest.config", scriptExts),
		endings("vitest.workspace", scriptExts+" .json"), endings("vite.config", scriptExts),
		endings("babel.config", scriptExts+" .json"),
		endings(".babelrc", ".js .cjs .mjs .json"),
		endings(".mocharc", ".js .cjs .mjs .yaml .yml .json .jsonc"),
		endings(".eslintrc", ".js .cjs .yaml .yml .json")),
	Sections: map[string][]string{
		"package.json": {"scripts", "jest", "vitest", "mocha", "babel", "ava", "nyc", "c8", "type", "imports",
			"packageManager"},
	},
	Locks: []Lock{
		{File: "package-lock.json", Program: "npm", Setup: "npm ci", Test: "npm test --"},
		{File: "npm-shrinkwrap.json", Program: "npm", Setup: "npm ci", Test: "npm test --"},
		{File: "pnpm-lock.yaml", Program: "pnpm", Setup: "pnpm install --frozen-lockfile", Test: "pnpm test"},
		{File: "yarn.lock", Holds: "__metadata:", Program: "yarn", Setup: "yarn install --immutable",
			Test: "yarn test"},
		{File: "yarn.lock", Program: "yarn", Setup: "yarn install --frozen-lockfile", Test: "yarn test"},
		{File: "bun.lock", Program: "bun", Setup: "bun install --frozen-lockfile", Test: "bun run test"},
		{File: "bun.lockb", Program: "bun", Setup: "bun install --frozen-lockfile", Test: "bun run test"},
	},
	NoLock: Lock{File: "package.json", Holds: `ependencies"`, Program: "npm",
		Setup: "npm install --no-package-lock --ignore-scripts", Test: "npm test --"},
	// With CI most hook managers install nothing; husky, lefthook and simple-git-hooks have words of their own.
	SetupEnv: []string{"CI=true", "HUSKY=0", "LEFTHOOK=0", "SKIP_INSTALL_SIMPLE_GIT_HOOKS=1"},
	Caches: []Cache{
		{Tool: "npm", Moved: []string{"npm_config_cache", "NPM_CONFIG_CACHE"}, In: home, Dir: ".npm"},
		{Tool: "pnpm", In: xdgCache, Dir: "pnpm"},
		{Tool: "pnpm", In: xdgData, Dir: "pnpm/store"},
		{Tool: "yarn", Moved: []string{"YARN_CACHE_FOLDER"}, In: userCache, Dir: "yarn"},
		{Tool: "yarn", Moved: []string{"YARN_GLOBAL_FOLDER"}, In: home, Dir: ".yarn/berry"},
		{Tool: "bun", Moved: []string{"BUN_INSTALL_CACHE_DIR"}, In: home, Dir: ".bun/install/cache"},
	},
	Products: []string{"node_modules"},
}, {
	Name:      Rust,
	Manifests: []string{"Cargo.toml"},
	Code:      []string{".rs"},
	Runners: []Runner{{Name: "cargo test", Format: Libtest,
		Report: []string{"--message-format=json-render-diagnostics"}}},
	Config:   []string{".cargo", "rust-toolchain", "rust-toolchain.toml", "build.rs"},
	Sections: map[string][]string{"Cargo.toml": {"package", "lib", "bin", "test", "profile"}},
	Locks:    []Lock{{File: "Cargo.lock", Program: "cargo"}},
	Install:  "cargo fetch",
	Caches: []Cache{
		{Tool: "cargo", In: cargoHome, Dir: "registry"}, {Tool: "cargo", In: cargoHome, Dir: "git"},
		{In: cargoHome, Dir: ".package-cache"}, {In: cargoHome, Dir: ".package-cache-mutate"},
		{In: cargoHome, Dir: ".global-cache"},
	},
	Built: []string{"target"},
}, {
	Name:      "php",
	Manifests: []string{"composer.json"},
	Locks: []Lock{{File: "composer.lock", Program: "composer",
		Setup: "composer install --no-interaction --no-progress --no-scripts"}},
	Caches:  []Cache{{Tool: "composer", Moved: []string{"COMPOSER_CACHE_DIR"}, In: userCache, Dir: "composer"}},
	Foreign: []string{"vendor"},
}, {
	Name:      "ruby",
	Manifests: []string{"Gemfile"},
	Locks: []Lock{{File: "Gemfile.lock", Program: "bundle",
		Setup: "BUNDLE_FROZEN=true BUNDLE_PATH=vendor/bundle bundle install"}},
	Caches:  []Cache{{Tool: "bundle", Moved: []string{"BUNDLE_USER_CACHE"}, In: home, Dir: ".bundle/cache"}},
	Foreign: []string{"vendor"},
}}
