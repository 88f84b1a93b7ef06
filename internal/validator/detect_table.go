package validator

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/packages"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/text"
)

// listed returns the checks of a kind in project.Kinds: the first ones, or, with last, those that replace tests.
func (p *layout) listed(k project.Kind, last bool) (vs []Validator) {
	dirs := p.Homes(k)
	for _, dir := range dirs {
		found := map[string]bool{}
		shows := func(s project.Sign) bool { return p.Shows(s, dir, dirs) }
		for _, c := range k.Checks {
			if c.Last != last || found[c.Name] || len(c.Where) > 0 && !slices.ContainsFunc(c.Where, shows) ||
				c.Also.File != "" && !shows(c.Also) || c.Unless.File != "" && shows(c.Unless) {
				continue
			}
			found[c.Name] = true
			later := packages.Owned(packages.Ending(p.later, k.Code...), dir, dirs)
			v := Validator{Name: at(c.Name, dir), Dir: dir, Command: lineOf(k.Before, c, later), runner: project.Runner{
				Name: c.Name, Format: c.Format}, From: p.ManifestIn(k, dir), Env: []string{"CI=true", "NO_COLOR=1"}}
			v.program, _, _ = strings.Cut(c.Run, " ")
			if k.Bin != "" {
				v.Env = append(v.Env, p.pathTo(k.Bin, dir))
			}
			if strings.Contains(c.Name, "test") || c.Format != "" {
				files := packages.Owned(packages.Ending(p.required(), k.Code...), dir, dirs)
				v.given = givens(dir, files, joinedTo("."))
			}
			vs = append(vs, v)
		}
	}
	return vs
}

// pathTo sets PATH to begin with the programs that the project installs for a package, or for the directories above it.
func (p *layout) pathTo(bin, dir string) string {
	all := proc.Getenv(p.Env, "PATH")
	for _, up := range slices.Backward(packages.Above(dir)) {
		all = joinPath(filepath.Join(p.Installed(up, path.Dir(bin)), path.Base(bin)), all)
	}
	return "PATH=" + all
}

// lineOf returns the command line of a check. While the check runs, the acceptance tests of later tasks are outside the
// tree, because they may not compile yet. The line also collects the reports that the program writes into the tree.
func lineOf(prepare string, c project.Check, later []string) string {
	var before, after strings.Builder
	before.WriteString(prepare)
	for i, f := range later {
		to := fmt.Sprintf(`"$TMPDIR"/later.%d`, i)
		fmt.Fprintf(&before, "mv %s %s && ", text.ShellQuote(dashless(f)), to)
		fmt.Fprintf(&after, "mv %s %s; ", to, text.ShellQuote(dashless(f)))
	}
	if c.Collect != "" {
		find := "find . -path " + text.ShellQuote(c.Collect)
		before.WriteString(find + " -delete; ")
		after.WriteString(find + " -exec cat {} + > " + project.ReportFile + "; ")
	}
	if before.Len() == 0 {
		return c.Run
	}
	return before.String() + c.Run + "; rc=$?; " + after.String() + "exit $rc"
}
