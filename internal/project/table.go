package project

import (
	"cmp"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// Venvs are the usual names of a virtual environment.
var Venvs = []string{".venv", "venv"}

// Kinds are the known kinds of projects, in the order of their checks. The first has the facts about all projects.
var Kinds = []Kind{{
	Name: "all",
	// Version managers read these files to choose a program.
	Config: []string{".tool-versions", "mise.toml", ".mise.toml", ".mise", ".prototools", ".python-version",
		".node-version", ".nvmrc", ".go-version", ".ruby-version", ".java-version", "mise.local.toml",
		".mise.local.toml"},
	Caches:   []Cache{{Tool: "pre-commit", Moved: []string{"PRE_COMMIT_HOME"}, In: xdgCache, Dir: "pre-commit"}},
	Products: []string{".idea"},
}, {
	Name:      Python,
	Manifests: []string{"pyproject.toml", "requirements.txt", "setup.py", "setup.cfg", "Pipfile"},
	Code:      []string{".py"},
	Apart:     true,
	Bin:       ".venv/bin",
	Test:      "pytest",
	Runners: []Runner{{
		Name: "pytest", Format: JUnit, Report: []string{"--junitxml=" + ReportFile},
		Coverage: []Coverage{
			{Own: true, Args: []string{pytestCov}, Part: []string{"--cov-fail-under=0"}, Where: []Sign{{
				File: "{pyproject.toml,pytest.ini,.pytest.ini,setup.cfg,tox.ini}",
				Text: `addopts\s*=\s*(?:\[[^\]]*|[^\n]*(?:\n[ \t]+[^\n]*)*)--cov\b`}}},
			{Args: []string{"--cov=.", "--cov-fail-under=0", pytestCov},
				Env: []string{"COVERAGE_FILE=" + CoverageDir + "/.coverage"},
				Where: []Sign{{File: ".coveragerc"}, {
					File: "{pyproject.toml,setup.cfg,tox.ini,requirements*.txt,Pipfile}",
					Text: `pytest[-_]cov|--cov\b|(?m)^\[(?:tool\.)?coverage[.:]`}}},
		},
	}},
	Checks: []Check{
		{Name: "pyright", Run: "pyright", Where: []Sign{{File: "pyrightconfig.json"},
			{File: "pyproject.toml", Text: `(?m)^\s*\[tool\.pyright\b`}}},
		{Name: "tox", Run: "tox", Last: true, Where: []Sign{{File: "tox.ini"}}},
		{Name: "nox", Run: "nox", Last: true, Where: []Sign{{File: "noxfile.py"}}},
	},
	Config: []string{"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "conftest.py", "ruff.toml",
		".ruff.toml", "mypy.ini", ".mypy.ini", ".coveragerc", "sitecustomize.py", "usercustomize.py",
		"entry_points.txt", "tox.toml", "noxfile.py", "pyrightconfig.json"},
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
	Products: []string{"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".venv", "htmlcov"},
	Foreign:  []string{"venv", ".tox", ".nox", ".eggs"},
}, {
	Name:      Go,
	Manifests: []string{"go.mod"},
	Code:      []string{".go"},
	Test:      "go test ./...",
	TestsIn:   "_test.go",
	Runners: []Runner{{
		Name: "go test", Format: GoTest, Report: []string{"-json"},
		Coverage: []Coverage{{
			Args: []string{"-coverprofile=" + CoverageDir + "/cover.out", "-coverpkg=./..."},
			Where: []Sign{{File: "{,.}{codecov,testcoverage}.y*ml"}, {
				File: "{*akefile,*.mk,?ustfile,Taskfile.y*ml,*.sh,scripts/*,.gitlab-ci.yml,.github/workflows/*.y*ml}",
				Text: `\s-cover(?:profile|mode|pkg)?\b`}}}},
	}},
	Apart: true,
	Checks: []Check{{Name: "golangci-lint", Run: "golangci-lint run ./...",
		Where: []Sign{{File: ".golangci.{yml,yaml,toml,json}"}}}},
	Config:  []string{"go.work", ".golangci.*"},
	Loaded:  pattern.New(`\bTestMain\b`),
	Locks:   []Lock{{File: "go.sum", Program: "go"}},
	Install: "go mod download",
	Caches: []Cache{
		{Tool: "go", Moved: []string{"GOCACHE"}, In: userCache, Dir: "go-build"},
		{Tool: "go", Moved: []string{"GOMODCACHE"}, In: gopath, Dir: "pkg/mod"},
		{Tool: "go", In: gopath, Dir: "pkg/sumdb"},
	},
	Foreign: []string{"vendor"},
}, {
	Name:      Node,
	Manifests: []string{"package.json"},
	Test:      "npm test",
	Code:      []string{".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"},
	Runners: []Runner{
		{Name: "node --test", Format: NodeLog, Report: []string{
			"--test-reporter=spec", "--test-reporter-destination=stdout",
			"--test-reporter=" + Reporter, "--test-reporter-destination=" + ReportFile}, Coverage: c8},
		{Name: "jest", Format: Jest, Report: []string{"--json", "--outputFile=" + ReportFile}, Coverage: []Coverage{{
			Where: []Sign{testScript("--coverage")}, Part: []string{"--coverageThreshold={}"},
			Args: []string{"--coverageReporters=lcovonly", "--coverageDirectory=" + CoverageDir}}}},
		{Name: "vitest", Format: Jest, Report: []string{"--reporter=default", "--reporter=json",
			"--outputFile.json=" + ReportFile}, Coverage: []Coverage{
			{Where: []Sign{testScript("--coverage")}, Args: vitestCov, Part: []string{"--coverage.enabled=false"}},
			{Where: []Sign{{File: "package.json", Text: `"@vitest/coverage-`}}, Args: vitestCov}}},
		{Name: "bun test", Format: JUnitFiles, Report: []string{"--reporter=junit",
			"--reporter-outfile=" + ReportFile}},
		{Name: "mocha", Format: Mocha, Report: []string{"--reporter=json", "--reporter-option=output=" + ReportFile},
			Coverage: c8},
	},
	Config: []string{".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "pnpm-workspace.yaml", "bunfig.toml",
		"tsconfig.json", ".nycrc", "jest.config.*", "vitest.config.*", "vitest.workspace.*", "vite.config.*",
		"babel.config.*", ".babelrc", ".babelrc.*", ".mocharc.*", ".eslintrc.*", "eslint.config.*", "ava.config.*",
		"karma.conf.*", "playwright.config.*", "cypress.config.*", ".pnp.cjs", ".pnp.loader.mjs", "__mocks__"},
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
	// With CI most hook managers install no hooks; husky, lefthook and simple-git-hooks have their own variables.
	SetupEnv: []string{"HUSKY=0", "LEFTHOOK=0", "SKIP_INSTALL_SIMPLE_GIT_HOOKS=1"},
	Caches: []Cache{
		{Tool: "npm", Moved: []string{"npm_config_cache", "NPM_CONFIG_CACHE"}, In: home, Dir: ".npm"},
		{Tool: "pnpm", In: xdgCache, Dir: "pnpm"},
		{Tool: "pnpm", In: xdgData, Dir: "pnpm/store"},
		{Tool: "yarn", Moved: []string{"YARN_CACHE_FOLDER"}, In: userCache, Dir: "yarn"},
		{Tool: "yarn", Moved: []string{"YARN_GLOBAL_FOLDER"}, In: home, Dir: ".yarn/berry"},
		{Tool: "bun", Moved: []string{"BUN_INSTALL_CACHE_DIR"}, In: home, Dir: ".bun/install/cache"},
	},
	Products:  []string{"node_modules", ".nyc_output"},
	Installed: []string{"node_modules", ".yarn", ".pnpm-store"},
}, {
	Name:      Rust,
	Manifests: []string{"Cargo.toml"},
	Code:      []string{".rs"},
	Test:      "cargo test",
	Runners: []Runner{{Name: "cargo test", Format: Libtest,
		Report: []string{"--message-format=json-render-diagnostics"}}},
	Checks: []Check{{Name: "clippy", Run: "cargo clippy --all-targets", Where: []Sign{{File: "{,.}clippy.toml"},
		{File: "Cargo.toml", Text: `(?m)^\s*\[(?:workspace\.)?lints\.clippy\b`}}}},
	Config: []string{".cargo", "rust-toolchain", "rust-toolchain.toml", "build.rs", "clippy.toml",
		".clippy.toml"},
	Sections: map[string][]string{"cargo.toml": {"package", "lib", "bin", "test", "profile"}},
	Locks:    []Lock{{File: "Cargo.lock", Program: "cargo"}},
	Install:  "cargo fetch",
	Caches: []Cache{
		{Tool: "cargo", In: cargoHome, Dir: "registry"}, {Tool: "cargo", In: cargoHome, Dir: "git"},
		{In: cargoHome, Dir: ".package-cache"}, {In: cargoHome, Dir: ".package-cache-mutate"},
		{In: cargoHome, Dir: ".global-cache"},
	},
	Built: []string{"target"},
}, {
	Name:      "deno",
	Manifests: []string{"deno.json", "deno.jsonc"},
	Code:      []string{".ts", ".js", ".mjs", ".tsx", ".jsx", ".mts"},
	Checks: []Check{
		{Name: "deno lint", Run: "deno lint"},
		{Name: "deno test", Run: "deno test --allow-all --junit-path=" + ReportFile, Format: JUnitFiles,
			Where: []Sign{{File: "**/*{_,.}test.{ts,tsx,mts,js,mjs,jsx}"}}},
	},
	Locks:  []Lock{{File: "deno.lock", Program: "deno"}},
	Caches: []Cache{{Tool: "deno", Moved: []string{"DENO_DIR"}, In: userCache, Dir: "deno"}},
}, {
	Name:      "bun",
	Manifests: []string{"bun.lock", "bun.lockb", "bunfig.toml"},
	Checks: []Check{{Name: "bun test", Run: "bun test --reporter=junit --reporter-outfile=" + ReportFile,
		Format: JUnitFiles, Where: []Sign{{File: "**/*{_,.}{test,spec}.{ts,tsx,js,jsx,mts,mjs,cjs,cts}"}},
		Unless: Sign{File: "package.json", Text: `"test"\s*:`}}},
}, {
	Name:      "maven",
	Manifests: []string{"pom.xml"},
	Code:      []string{".java", ".kt", ".groovy", ".scala"},
	Before:    javaTemp,
	Checks: either("mvn test", "./mvnw", "mvn", " -B -ntp test", Check{Format: JUnitFiles,
		Collect: "*/target/surefire-reports/TEST-*.xml"}),
	Config: []string{"mvnw", ".mvn"},
	Caches: []Cache{{Tool: "mvn", In: home, Dir: ".m2/repository"}, {Tool: "mvn", In: home, Dir: ".m2/wrapper"}},
	Built:  []string{"target"},
}, {
	Name:      "gradle",
	Manifests: []string{"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"},
	Code:      []string{".java", ".kt", ".groovy", ".scala"},
	Before:    javaTemp,
	Checks: either("gradle test", "./gradlew", "gradle", " --no-daemon --console=plain test", Check{
		Format: JUnitFiles, Collect: "*/build/test-results/*/TEST-*.xml"}),
	Config: []string{"gradlew", "gradle-wrapper.properties", "gradle.properties"},
	Caches: []Cache{{Tool: "java", Moved: []string{"GRADLE_USER_HOME"}, In: home, Dir: ".gradle/caches"},
		{In: home, Dir: ".gradle/wrapper"}, {Tool: "java", In: home, Dir: ".gradle/native"},
		{Tool: "java", In: home, Dir: ".gradle/daemon"}, {In: home, Dir: ".gradle/jdks"}},
	Built: []string{".gradle", "build"},
}, {
	Name:      "dotnet",
	Manifests: []string{"*.sln", "*.slnx", "*.csproj", "*.fsproj"},
	Code:      []string{".cs", ".fs"},
	Checks: []Check{{Name: "dotnet test", Run: "dotnet test --logger trx", Format: TRX,
		Collect: "*/TestResults/*.trx"}},
	Config: []string{"global.json", "dotnet-tools.json", "Directory.Build.props", "Directory.Build.targets"},
	Caches: []Cache{{Tool: "dotnet", Moved: []string{"NUGET_PACKAGES"}, In: home, Dir: ".nuget/packages"}},
	Built:  []string{"bin", "obj", "TestResults"},
}, {
	Name:      "ruby",
	Manifests: []string{"Gemfile", "Rakefile", ".rspec"},
	Code:      []string{".rb"},
	Apart:     true,
	Checks: slices.Concat(
		either("rubocop", "Gemfile:rubocop", "rubocop", "", Check{Also: Sign{File: ".rubocop.yml"}}),
		either("rspec", "Gemfile:rspec", "rspec", " --format progress --format json --out "+ReportFile,
			Check{Format: RSpec, Also: Sign{File: "**/*_spec.rb"}}),
		either("rake test", "Gemfile:rake", "rake", " test",
			Check{Also: Sign{File: "Rakefile", Text: `TestTask|task[\s(]+:?["']?test\b`}})),
	Config: []string{".rspec", ".rubocop.yml", "Rakefile", "spec_helper.rb", "rails_helper.rb"},
	Locks: []Lock{{File: "Gemfile.lock", Program: "bundle",
		Setup: "BUNDLE_FROZEN=true BUNDLE_PATH=vendor/bundle bundle install"}},
	Caches:  []Cache{{Tool: "bundle", Moved: []string{"BUNDLE_USER_CACHE"}, In: home, Dir: ".bundle/cache"}},
	Foreign: []string{"vendor"},
}, {
	Name:      "php",
	Manifests: []string{"composer.json", "phpunit.xml", "phpunit.xml.dist"},
	Code:      []string{".php"},
	Apart:     true,
	Bin:       "vendor/bin",
	Checks: []Check{
		{Name: "phpstan", Run: "phpstan analyse --no-progress",
			Where: []Sign{{File: "phpstan.neon"}, {File: "phpstan.neon.dist"}, {File: "phpstan.dist.neon"}}},
		{Name: "pest", Run: "pest --log-junit " + ReportFile, Format: JUnitFiles,
			Where: []Sign{{File: "composer.json", Text: `"pestphp/pest"`}}},
		{Name: "phpunit", Run: "phpunit --log-junit " + ReportFile, Format: JUnitFiles, Last: true,
			Where: []Sign{{File: "phpunit.xml*"}, {File: "composer.json", Text: `"phpunit/phpunit"`}}},
	},
	Config: []string{"phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml", "Pest.php", "phpstan.neon",
		"phpstan.neon.dist"},
	Locks: []Lock{{File: "composer.lock", Program: "composer",
		Setup: "composer install --no-interaction --no-progress --no-scripts"}},
	Caches:    []Cache{{Tool: "composer", Moved: []string{"COMPOSER_CACHE_DIR"}, In: userCache, Dir: "composer"}},
	Foreign:   []string{"vendor"},
	Installed: []string{"vendor"},
}, {
	Name:      "elixir",
	Manifests: []string{"mix.exs"},
	Code:      []string{".ex", ".exs"},
	Checks:    []Check{{Name: "mix test", Run: "mix test"}},
	Config:    []string{"test_helper.exs", "mix.exs"},
	Locks:     []Lock{{File: "mix.lock", Program: "mix", Setup: "mix deps.get --check-locked"}},
	Caches:    []Cache{{Tool: "mix", In: home, Dir: ".hex"}, {Tool: "mix", In: home, Dir: ".mix"}},
	Built:     []string{"_build", "deps"},
}, {
	Name:      "swift",
	Manifests: []string{"Package.swift"},
	Code:      []string{".swift"},
	Apart:     true,
	Checks: []Check{{Name: "swift test", Run: "swift test --parallel --xunit-output " + ReportFile,
		Format: JUnitFiles}},
	Built: []string{".build"},
}, {
	Name:      "dart",
	Manifests: []string{"pubspec.yaml"},
	Code:      []string{".dart"},
	Apart:     true,
	Checks: either("dart test", `pubspec.yaml:(?m)^\s*sdk:\s*flutter`, "dart", " test --file-reporter json:"+ReportFile,
		Check{Format: DartJSON, Also: Sign{File: "test/**/*_test.dart"}}),
	Config: []string{"dart_test.yaml"},
	Locks:  []Lock{{File: "pubspec.lock", Program: "dart", Setup: "dart pub get --enforce-lockfile"}},
	Caches: []Cache{{Tool: "dart", Moved: []string{"PUB_CACHE"}, In: home, Dir: ".pub-cache"}},
	Built:  []string{".dart_tool"},
}, {
	Name:      "cmake",
	Manifests: []string{"CMakeLists.txt"},
	Code:      []string{".c", ".cc", ".cpp", ".cxx"},
	Checks: []Check{{Name: "ctest", Format: JUnitFiles, Run: "cmake -S . -B build-tilth && " +
		"cmake --build build-tilth && ctest --test-dir build-tilth --output-on-failure --output-junit " + ReportFile,
		Where: []Sign{{File: "**/CMakeLists.txt", Text: `(?i)\b(?:enable_testing|include\s*\(\s*ctest)\b`}}}},
	Built: []string{"build-tilth"},
}, {
	Name:      "make",
	Manifests: []string{"Makefile", "makefile", "GNUmakefile", "justfile", "Justfile", "Taskfile.yml", "Taskfile.yaml"},
	Else:      true,
	Config: []string{"Makefile", "makefile", "GNUmakefile", "justfile", "Justfile", ".justfile", "Taskfile.*",
		"Taskfile.dist.*"},
	Checks: []Check{
		{Name: "make test", Run: "make test", Where: []Sign{{File: "*akefile", Text: `(?m)^test\s*:`}}},
		{Name: "just test", Run: "just test", Last: true, Where: []Sign{{File: "?ustfile", Text: `(?m)^@?test\b.*:`}}},
		{Name: "task test", Run: "task test", Last: true, Where: []Sign{{File: "Taskfile.y*ml", Text: `(?m)^\s+test:`}}},
	},
}}

// testScript returns the sign of words in the test script of package.json.
func testScript(words string) Sign {
	return Sign{File: "package.json", Text: `"test"\s*:\s*"[^"]*` + words}
}

// pytestCov makes pytest-cov write the lines that ran.
const pytestCov = "--cov-report=xml:" + CoverageDir + "/coverage.xml"

// vitestCov makes vitest write the lines that ran.
var vitestCov = []string{"--coverage.enabled", "--coverage.reporter=lcovonly",
	"--coverage.reportsDirectory=" + CoverageDir}

// c8 computes the lines that ran from node's coverage files.
var c8 = []Coverage{
	{Own: true, Where: []Sign{testScript(`\bc8\s`)}, After: c8Report + "coverage/tmp"},
	{Where: []Sign{{File: ".c8rc*"}, {File: "package.json", Text: `"c8"\s*:`}},
		After: c8Report + `"$NODE_V8_COVERAGE"`, Env: []string{"NODE_V8_COVERAGE=" + CoverageDir + "/v8"}},
}

const c8Report = "c8 report --reporter=lcovonly --reports-dir=" + CoverageDir + " --temp-directory="

// javaTemp makes Java use TMPDIR, which it ignores by default.
const javaTemp = `export JAVA_TOOL_OPTIONS="-Djava.io.tmpdir=$TMPDIR $JAVA_TOOL_OPTIONS"; `

// either returns a check that runs with a program of the project if it has its sign, a file or "file:text", else with
// another program.
func either(name, sign, program, rest string, c Check) []Check {
	file, words, _ := strings.Cut(sign, ":")
	own := strings.TrimPrefix(file, "./")
	first := map[string]string{"Gemfile": "bundle exec " + program, "pubspec.yaml": "flutter"}[own]
	a, b := c, c
	a.Name, a.Run, a.Where = name, cmp.Or(first, file)+rest, []Sign{{File: own, Text: words}}
	b.Name, b.Run = name, program+rest
	return []Check{a, b}
}
