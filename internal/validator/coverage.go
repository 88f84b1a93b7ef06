package validator

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/packages"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/testreport"
	"github.com/git-tilth/git-tilth/internal/text"
)

// lines are the executable lines of files; lines that ran are true.
type lines map[string]map[int]bool

func (l lines) add(file string, line int, ran bool) {
	if l[file] == nil {
		l[file] = map[int]bool{}
	}
	l[file][line] = l[file][line] || ran
}

// coverageOf returns how the project measures the lines that the tests of a check run, nil if it does not.
func (p *layout) coverageOf(v Validator) *project.Coverage {
	for _, c := range v.runner.Coverage {
		for _, s := range c.Where {
			if p.Shows(s, path.Clean(v.Dir), nil) || p.Shows(s, ".", nil) {
				return &c
			}
		}
	}
	return nil
}

// Measures reports whether the check can measure the lines that its tests run.
func (v Validator) Measures() bool { return v.coverage != nil && v.starts() }

// measured reads the lines that a run has measured.
func (v Validator) measured(ctx context.Context, in ExecEnv, command proc.Cmd, dir string) lines {
	if dir == "" {
		return nil
	}
	if v.coverage.After != "" {
		line := strings.ReplaceAll(v.coverage.After, project.CoverageDir, text.ShellQuote(dir))
		command.Argv = []string{"sh", "-c", line}
		_, _ = proc.Run(ctx, command) // coverage is advice; after a failure there is nothing to read
	}
	out, root := lines{}, proc.RealPath(in.Box.Inside(in.Dir))
	add := func(file string, line int, ran bool) {
		if !filepath.IsAbs(file) {
			file = filepath.Join(root, v.Dir, file)
		}
		if file, err := filepath.Rel(root, file); err == nil {
			out.add(filepath.ToSlash(file), line, ran)
		}
	}
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		data, _ := jsonl.ReadIn(dir, f.Name(), reportCap)
		gomod, _ := jsonl.ReadIn(in.Dir, filepath.Join(v.Dir, "go.mod"), packages.ReadCap)
		testreport.Coverage(f.Name(), data, packages.Module(string(gomod)), add)
	}
	return out
}

// maxUncovered limits the number of files with listed lines.
const maxUncovered = 20

// Uncovered returns the added lines of a patch that no test ran, as a text for each file. If a check did not measure,
// its tests run again for that, unless they take long.
func (r Report) Uncovered(ctx context.Context, vs []Validator, in ExecEnv, limit time.Duration,
	patch []byte) (out []string) {
	all := lines{}
	for _, v := range vs {
		at := slices.IndexFunc(r.Results, func(res Result) bool { return res.Name == v.Name && res.Passed })
		if at < 0 || !v.Measures() {
			continue
		}
		res := r.Results[at]
		if !v.measuring && res.Seconds < preflightTimeout.Seconds() {
			v.measuring = true
			res = v.run(ctx, in, limit)
		}
		for file, numbers := range res.lines {
			for n, ran := range numbers {
				all.add(file, n, ran)
			}
		}
	}
	inFile, before := "", 0 // the line found before
	added(patch, func(file string, n int, line string) {
		if ran, is := all[file][n]; !is || ran || project.IsTest(file) || !word().MatchString(line) {
			return
		}
		switch last := len(out) - 1; {
		case file != inFile:
			out = append(out, fmt.Sprintf("%s:%d", file, n))
		case n == before+1:
			out[last] = fmt.Sprintf("%s-%d", strings.TrimSuffix(out[last], fmt.Sprintf("-%d", before)), n)
		default:
			out[last] += fmt.Sprintf(", %d", n)
		}
		inFile, before = file, n
	})
	return out[:min(len(out), maxUncovered)]
}

var (
	word = pattern.New(`\w`)
	hunk = pattern.New(`^@@ -\d+(?:,\d+)? \+(\d+)`)
)

// added calls see with each line that a patch adds.
func added(patch []byte, see func(file string, n int, line string)) {
	file, n := "", 0
	for line := range strings.Lines(string(patch)) {
		if m := hunk().FindStringSubmatch(line); m != nil {
			n, _ = strconv.Atoi(m[1])
			continue
		}
		switch {
		case strings.HasPrefix(line, "diff --git "):
			n = 0
		case n == 0:
			if name, ok := strings.CutPrefix(strings.TrimRight(line, "\t\n"), "+++ b/"); ok {
				file = name
			}
		case line[0] == '+':
			see(file, n, line[1:])
			n++
		case line[0] == ' ':
			n++
		}
	}
}
