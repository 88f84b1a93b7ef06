package packages

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Homes returns the directories of a kind's packages.
func (p *Tree) Homes(k project.Kind) []string {
	var dirs []string
	for _, m := range k.Manifests {
		dirs = append(dirs, p.DirsOf(m)...)
	}
	if k.Name == project.Python && len(Ending(p.Files, k.Code...)) > 0 {
		dirs = append(dirs, ".")
	}
	if !k.Apart {
		return Outermost(dirs)
	}
	return slices.Compact(slices.Sorted(slices.Values(dirs)))
}

// Shows reports whether the package in dir has a sign.
func (p *Tree) Shows(s project.Sign, dir string, dirs []string) bool {
	for _, f := range Owned(p.Files, dir, dirs) {
		if ok, err := doublestar.Match(s.File, f); ok && err == nil {
			if s.Text == "" || regexp.MustCompile(s.Text).MatchString(p.Read(path.Join(dir, f))) {
				return true
			}
		}
	}
	return false
}

// ManifestIn returns the manifest of a package in dir.
func (p *Tree) ManifestIn(k project.Kind, dir string) string {
	for _, m := range k.Manifests {
		for _, f := range p.Files {
			if path.Dir(f) == dir && project.Named(path.Base(f), m) {
				return f
			}
		}
	}
	return path.Join(dir, "*"+slices.Concat(k.Code, []string{""})[0])
}

// Owned returns the files in dir that are in no other package below it, relative to dir.
func Owned(files []string, dir string, packages []string) []string {
	inner := Below(packages, dir)
	return slices.DeleteFunc(slices.Clone(Below(files, dir)), func(f string) bool {
		return slices.ContainsFunc(inner, func(p string) bool { return strings.HasPrefix(f, p+"/") })
	})
}

// Above returns dir and the directories above it, up to the top.
func Above(dir string) []string {
	if dir == "." {
		return []string{dir}
	}
	return append([]string{dir}, Above(path.Dir(dir))...)
}

// Outermost returns the directories that are not inside another one, sorted.
func Outermost(dirs []string) []string {
	dirs = slices.Compact(slices.Sorted(slices.Values(dirs)))
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool {
		return slices.ContainsFunc(dirs, func(top string) bool {
			return top != dir && (top == "." || strings.HasPrefix(dir, top+"/"))
		})
	})
}

// Below returns the files in dir ("." for all), relative to it.
func Below(files []string, dir string) []string {
	if dir == "." {
		return files
	}
	var out []string
	for _, f := range files {
		if rel, ok := strings.CutPrefix(f, dir+"/"); ok {
			out = append(out, rel)
		}
	}
	return out
}

// Ending returns the files with one of the extensions.
func Ending(files []string, exts ...string) []string {
	var out []string
	for _, f := range files {
		if slices.Contains(exts, path.Ext(f)) {
			out = append(out, f)
		}
	}
	return out
}

// Section returns the text of a table in an ini or TOML file with its sub-tables, and whether it exists.
func Section(text, name string) (body string, ok bool) {
	header := pattern.New(`^\s*\[+\s*` + regexp.QuoteMeta(name) + `\s*(?:\]|\.|:)`)
	inside := false
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "[") {
			inside = header().MatchString(line)
			ok = ok || inside
		} else if inside {
			out.WriteString(line)
		}
	}
	return out.String(), ok
}

// TaskVar tells a configured validator the task. No other command sees it.
const TaskVar = "TILTH_TASK"

// Environment returns env with more variables, and without a task's name unless more has it.
func Environment(env, more []string) []string {
	if env == nil {
		env = os.Environ()
	}
	out := make([]string, 0, len(env)+len(more))
	for _, kv := range env {
		key, _, _ := strings.Cut(kv, "=")
		replaced := slices.ContainsFunc(more, func(m string) bool { return strings.HasPrefix(m, key+"=") })
		if key != TaskVar && !replaced {
			out = append(out, kv)
		}
	}
	return append(out, more...)
}

// Has reports whether a program can be started in dir with env.
func Has(program, dir string, env []string) bool {
	_, err := proc.LookPath(program, dir, env)
	return err == nil
}

// In returns a command in a directory of the project.
func In(dir, command string) string {
	if dir == "." || dir == "" {
		return command
	}
	return "cd " + text.ShellQuote(dir) + " && " + command
}

var moduleLine = pattern.New(`(?m)^module\s+"?([^\s"]+)`)

// Module returns the module that a go.mod names, "" for none.
func Module(gomod string) string {
	if m := moduleLine().FindStringSubmatch(gomod); m != nil {
		return m[1]
	}
	return ""
}

// Without returns files except those in out.
func Without(files, out []string) []string {
	return slices.DeleteFunc(slices.Clone(files), func(f string) bool { return slices.Contains(out, f) })
}
