package validator

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/testreport"
	"github.com/git-tilth/git-tilth/internal/text"
)

// TestKinds: the checks of each kind of project, with the file that reveals it, with stub programs.
func TestKinds(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"maven":         {map[string]string{"pom.xml": "", "lib/pom.xml": ""}, "mvn test: mvn -B -ntp test"},
		"maven wrapper": {map[string]string{"pom.xml": "", "mvnw": ""}, "mvn test: ./mvnw -B -ntp test"},
		"gradle": {map[string]string{"settings.gradle.kts": "", "app/build.gradle.kts": ""},
			"gradle test: gradle --no-daemon --console=plain test"},
		"gradle wrapper": {map[string]string{"build.gradle": "", "gradlew": ""},
			"gradle test: ./gradlew --no-daemon --console=plain test"},
		"dotnet": {map[string]string{"x.sln": "", "src/x.csproj": ""}, "dotnet test: dotnet test --logger trx"},
		"rspec": {map[string]string{"Gemfile": "gem 'rspec'\n", "spec/a_spec.rb": "", ".rubocop.yml": ""},
			"rubocop: rubocop, rspec: bundle exec rspec --format progress --format json --out {report}"},
		"rspec without a Gemfile": {map[string]string{".rspec": "", "spec/a_spec.rb": ""},
			"rspec: rspec --format progress --format json --out {report}"},
		"rake": {map[string]string{"Rakefile": "Rake::TestTask.new\n", "test/test_a.rb": ""}, "rake test: rake test"},
		"php": {map[string]string{"composer.json": `{"require-dev": {"phpunit/phpunit": "^10"}}`, "phpstan.neon": ""},
			"phpstan: phpstan analyse --no-progress, phpunit: phpunit --log-junit {report}"},
		"pest": {map[string]string{"composer.json": `{"require-dev": {"pestphp/pest": "^2"}}`, "phpunit.xml": ""},
			"pest: pest --log-junit {report}"},
		"elixir": {map[string]string{"mix.exs": "", "apps/a/mix.exs": ""}, "mix test: mix test"},
		"swift": {map[string]string{"Package.swift": ""},
			"swift test: swift test --parallel --xunit-output {report}"},
		"dart": {map[string]string{"pubspec.yaml": "", "test/a_test.dart": ""},
			"dart test: dart test --file-reporter json:{report}"},
		"flutter": {map[string]string{"pubspec.yaml": "  flutter:\n    sdk: flutter\n", "test/a_test.dart": ""},
			"dart test: flutter test --file-reporter json:{report}"},
		"cmake without tests": {map[string]string{"CMakeLists.txt": "project(x)\n"}, ""},
		"deno": {map[string]string{"deno.json": "{}", "main_test.ts": ""},
			"deno lint: deno lint, deno test: deno test --allow-all --junit-path={report}"},
		"bun": {map[string]string{"bun.lock": "", "package.json": "{}", "a.test.ts": ""},
			"bun test: bun test --reporter=junit --reporter-outfile={report}"},
		"node scripts": {map[string]string{"package.json": `{"scripts": {"lint": "eslint .", "typecheck": "tsc"}}`},
			"npm run lint: npm run lint, npm run typecheck: npm run typecheck"},
		"tox": {map[string]string{"tox.ini": "", "setup.py": "", "check.py": ""}, "tox: tox"},
		"tox beside pytest": {map[string]string{"tox.ini": "", "test_a.py": ""},
			"pytest: pytest -q --color=no --continue-on-collection-errors --rootdir=."},
		"pyright": {map[string]string{"pyproject.toml": "[tool.pyright]\n", "a.py": ""}, "pyright: pyright"},
		"clippy": {map[string]string{"Cargo.toml": "[lints.clippy]\n", "src/main.rs": ""},
			"clippy: cargo clippy --all-targets, cargo test: cargo test --no-fail-fast {report arguments}"},
		"golangci-lint": {map[string]string{"go.mod": "module x\n", ".golangci.yml": "", "a.go": ""},
			"golangci-lint: golangci-lint run ./..., go vet: go vet ./..., go test: go test ./..."},
		"make":                {map[string]string{"Makefile": "all:\n\ntest: all\n\ttrue\n"}, "make test: make test"},
		"make without a test": {map[string]string{"Makefile": "all:\n"}, ""},
		"just":                {map[string]string{"justfile": "test:\n  true\n"}, "just test: just test"},
		"task": {map[string]string{"Taskfile.yml": "tasks:\n  test:\n    cmds: [true]\n"},
			"task test: task test"},
		"make in a project": {map[string]string{"Makefile": "test:\n", "mix.exs": ""}, "mix test: mix test"},
		"nothing":           {map[string]string{"README.md": ""}, ""},
	} {
		bin := stubs(t, strings.Fields("mvn gradle dotnet rubocop rspec bundle rake phpstan phpunit pest mix swift "+
			"dart flutter cmake deno bun npm tox pytest pyright cargo golangci-lint go make just task")...)
		vs := Detect(context.Background(), ExecEnv{Dir: tree(t, c.files), Env: []string{"PATH=" + bin}}, nil, Tasks{})
		var got []string
		for _, v := range vs {
			line, _, _ := strings.Cut(v.Command, "; rc=")
			line = line[strings.LastIndex(line, "; ")+1:]
			got = append(got, v.Name+": "+strings.TrimSpace(line)+strings.Join(v.Argv, " ")+v.Skip)
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: found %s, want %s", name, strings.Join(got, ", "), c.want)
		}
	}
}

// TestInstalledPrograms: a program that only the project has installed runs its checks, in packages too.
func TestInstalledPrograms(t *testing.T) {
	for program, files := range map[string]map[string]string{
		"vendor/bin/phpunit": {"phpunit.xml": ""},
		".venv/bin/pyright":  {"api/pyproject.toml": "[tool.pyright]\n", "api/a.py": ""},
	} {
		for _, installed := range []bool{true, false} {
			dir := tree(t, files)
			if installed {
				put(t, dir, program, "#!/bin/sh\n")
				if err := os.Chmod(filepath.Join(dir, program), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			vs := Detect(context.Background(), ExecEnv{Dir: dir, Env: []string{"PATH=/nonexistent"}}, nil, Tasks{})
			if len(vs) != 1 || (vs[0].Skip == "") != installed {
				t.Errorf("%s, installed %v: %+v", program, installed, vs)
			}
		}
	}
}

// TestNotChecked: without validators, the message names the usual command of the project's kind.
func TestNotChecked(t *testing.T) {
	for file, want := range map[string]string{"notes.txt": "make test", "x.py": "pytest", "package.json": "npm test",
		"pom.xml": "mvn test", "x.csproj": "dotnet test", "Gemfile": "rake test", "main.c": "ctest"} {
		rep := Run(context.Background(), nil, ExecEnv{Dir: tree(t, map[string]string{file: ""})}, 0)
		setting := "git config --add tilth.validator " + text.ShellQuote("test="+want)
		wantText(t, rep, "NOT checked: no validators ("+setting+")")
	}
}

// TestHomelessTest: an acceptance test of a kind that the tree has must run, one of another kind is named.
func TestHomelessTest(t *testing.T) {
	tasks := Tasks{Current: "T-001", All: three, Seed: []string{"tests/t001_a_test.rb"}}
	for manifest, want := range map[string]string{"README.md": "NOT RUN", "x/Gemfile": "FAILED"} {
		dir := tree(t, map[string]string{"tests/t001_a_test.rb": "", manifest: ""})
		wantText(t, judge(t, dir, tasks), "## acceptance tests: "+want)
	}
}

// TestReportFormats: one passed, one failed and one skipped test in each format that rows of the table name.
func TestReportFormats(t *testing.T) {
	for name, c := range map[string]struct {
		format project.Format
		file   string
		where  string
	}{
		"surefire, two files": {project.JUnitFiles, `<?xml version="1.0"?><testsuite tests="2"><testcase classname="a.T001_XTest" name="ok"/>` +
			`<testcase classname="a.T001_XTest" name="bad"><failure/></testcase></testsuite>` +
			`<?xml version="1.0"?><testsuite tests="1"><testcase classname="a.T001_XTest" name="left"><skipped/></testcase></testsuite>`, "src/T001_XTest.java"},
		"phpunit": {project.JUnitFiles, `<testsuites><testsuite tests="3"><testsuite tests="3">` +
			`<testcase classname="XTest" file="/top/tests/T001_XTest.php" name="ok"/><testcase classname="XTest" file="/top/tests/T001_XTest.php" name="bad"><error/></testcase>` +
			`<testcase classname="XTest" file="/top/tests/T001_XTest.php" name="left"><skipped/></testcase></testsuite></testsuite></testsuites>`, "tests/T001_XTest.php"},
		"trx": {project.TRX, `<TestRun><Results><UnitTestResult testId="1" outcome="Passed"/><UnitTestResult testId="2" outcome="Failed"/>` +
			`<UnitTestResult testId="3" outcome="NotExecuted"/></Results><TestDefinitions>` +
			`<UnitTest id="1"><TestMethod className="N.T001_X" name="ok"/></UnitTest><UnitTest id="2"><TestMethod className="N.T001_X" name="bad"/></UnitTest>` +
			`<UnitTest id="3"><TestMethod className="N.T001_X" name="left"/></UnitTest></TestDefinitions></TestRun>`, "X/T001_X.cs"},
		"rspec": {project.RSpec, `{"examples": [{"file_path": "./spec/t001_spec.rb", "full_description": "ok", "status": "passed"},` +
			`{"file_path": "./spec/t001_spec.rb", "full_description": "bad", "status": "failed"},` +
			`{"file_path": "./spec/t001_spec.rb", "full_description": "left", "status": "pending"}]}`, "spec/t001_spec.rb"},
		"dart": {project.DartJSON, `{"type": "suite", "suite": {"id": 0, "path": "/top/test/t001_test.dart"}}
{"type": "testStart", "test": {"id": 1, "name": "loading", "suiteID": 0}}
{"type": "testDone", "testID": 1, "result": "success", "hidden": true}
{"type": "testStart", "test": {"id": 2, "name": "ok", "suiteID": 0}}
{"type": "testDone", "testID": 2, "result": "success"}
{"type": "testStart", "test": {"id": 3, "name": "bad", "suiteID": 0}}
{"type": "testDone", "testID": 3, "result": "failure"}
{"type": "testStart", "test": {"id": 4, "name": "left", "suiteID": 0}}
{"type": "testDone", "testID": 4, "result": "success", "skipped": true}
`, "test/t001_test.dart"},
	} {
		found := given{c.where, c.where}.found(testreport.Read(c.format, []byte(c.file), nil, "/top"))
		byName := map[string]state{}
		for of, s := range found {
			byName[of.Name] = s
		}
		if len(byName) != 3 || byName["ok"] != passed || byName["bad"] != failed || byName["left"] != skipped {
			t.Errorf("%s: read %v", name, byName)
		}
	}
}

// TestListedLeavesLaterTasksOut: a check that compiles all tests does not see those of later tasks, and its output
// file in the tree is its report.
func TestListedLeavesLaterTasksOut(t *testing.T) {
	dir := tree(t, map[string]string{"pom.xml": "", "src/T001_aTest.java": "", "src/T002_bTest.java": "",
		"target/surefire-reports/TEST-old.xml": `<testsuite tests="1"><testcase classname="Old" name="x"><failure/></testcase></testsuite>`})
	bin := t.TempDir()
	put(t, bin, "mvn", "#!/bin/sh\n[ ! -e src/T002_bTest.java ] || exit 1\nmkdir -p target/surefire-reports\n"+
		`echo '<testsuite tests="1"><testcase classname="p.T001_aTest" name="adds"/></testsuite>' > target/surefire-reports/TEST-a.xml`+"\n")
	if err := os.Chmod(filepath.Join(bin, "mvn"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, in := context.Background(), ExecEnv{Dir: dir, Env: []string{"PATH=" + bin + ":" + os.Getenv("PATH")}}
	tasks := Tasks{Current: "T-001", All: three, Seed: []string{"src/T001_aTest.java", "src/T002_bTest.java"}}
	rep := Run(ctx, Detect(ctx, in, nil, tasks), in, 0)
	wantPassed(t, rep, true)
	wantText(t, rep, "## mvn test: passed, 1 of 1 test")
	if _, err := os.Stat(filepath.Join(dir, "src/T002_bTest.java")); err != nil {
		t.Error("the later task's test is gone")
	}
	tasks.Current, tasks.Done = "T-002", []string{"T-001"}
	wantPassed(t, Run(ctx, Detect(ctx, in, nil, tasks), in, 0), false)
}
