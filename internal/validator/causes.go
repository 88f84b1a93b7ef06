package validator

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Source lists the files that the user's checkout has and a commit lacks. A path with a slash at its end is a directory
// with only such files.
type Source struct {
	Top              string // the path of the checkout
	Changed, Ignored []string
}

// maxCauses limits the files in one hint.
const maxCauses = 5

var missing = pattern.New(`(?i)not found|no such|no module|cannot|can't|undefined|unresolved|missing|unable to`)

// committing returns the command that commits the changed files that an output reports as missing, or "".
func (s Scene) committing(output string) string {
	lines := missed(output)
	return commit(s.changed(func(name string) bool {
		base := path.Base(name)
		return namesPath(lines, name) || hasWord(lines, strings.TrimSuffix(base, path.Ext(base)))
	}))
}

// missed returns the lines of an output that report something as missing.
func missed(output string) string {
	var lines strings.Builder
	for line := range strings.Lines(output) {
		if missing().MatchString(line) {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

// changed returns the changed files of the checkout that match.
func (s Scene) changed(match func(name string) bool) (out []string) {
	for _, name := range s.Source().Changed {
		if match(name) {
			out = append(out, name)
		}
	}
	return out
}

// commit returns the command that commits files, "" for none.
func commit(files []string) string {
	if len(files) == 0 {
		return ""
	}
	if len(files) > maxCauses {
		files = []string{"--all"}
	}
	return "git add " + text.ShellQuote(files...) + " && git commit -m 'Add files that the checks need'"
}

// cause returns a command that may fix a check that fails on the base: it copies a file that only the user's checkout
// has, or opens a closed path above it. It is "" if neither is known. note describes the cause.
func (p *layout) cause(output string, s Scene) (fix, note string) {
	if named := s.changed(func(name string) bool { return namesPath(output, name) }); len(named) > 0 {
		return commit(named), ""
	}
	var config strings.Builder
	for _, f := range p.Files {
		if project.Configures(f) || project.IsManifest(f) {
			config.WriteString(p.Read(f) + "\n")
		}
	}
	var found []string
	for _, name := range s.Source().Ignored {
		isMade := slices.ContainsFunc(strings.Split(name, "/"), project.IsProduct)
		if strings.HasSuffix(name, "/") || p.Exists(name) || isMade {
			continue
		}
		if namesPath(output, name) || namesPath(config.String(), name) {
			found = append(found, "git config --add tilth.copy "+text.ShellQuote(name))
		}
	}
	if len(found) > 0 {
		return strings.Join(found[:min(len(found), maxCauses)], " && "), ""
	}
	if file := s.above(output, config.String()); file != "" {
		note = " (the checks do not see " + file + ", above the repository)"
		if s.Box.Closes(file) && !s.Box.Secret(file) {
			fix = "git config --add tilth.sandboxRead " + text.ShellQuote(file)
		}
		return fix, note
	}
	return commit(s.Source().Changed), ""
}

// above finds a file above the user's checkout that the output reports as missing or the configuration names, and that
// a check cannot see: the sandbox closes it, or the check runs elsewhere because there are no namespaces.
func (s Scene) above(output, config string) string {
	lines, elsewhere := missed(output), s.Box.Inside(s.Dir) == s.Dir
	for dir := s.Source().Top; dir != "" && dir != filepath.Dir(dir); {
		dir = filepath.Dir(dir)
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			file := filepath.Join(dir, e.Name())
			if e.Type().IsRegular() && (hasWord(lines, e.Name()) || strings.Contains(config, "../"+e.Name())) &&
				(elsewhere || s.Box.Closes(file)) {
				return file
			}
		}
	}
	return ""
}

// namesPath reports whether a text has a path, or the name at its end.
func namesPath(in, name string) bool {
	name = strings.TrimSuffix(name, "/")
	return hasWord(in, name) || hasWord(in, path.Base(name))
}

// hasWord reports whether a text has a file's name that is not part of a longer one.
func hasWord(in, name string) bool {
	if !strings.Contains(in, name) {
		return false
	}
	return regexp.MustCompile(`(?m)(?:^|[^\w-])` + regexp.QuoteMeta(name) + `(?:$|[^\w.-]|\.(?:\W|$))`).MatchString(in)
}
