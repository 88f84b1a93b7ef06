package validator

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/packages"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/project"
)

// affected returns the checks at the top, of acceptance tests, and of packages that have a changed file or depend on
// such a package. A changed file outside of all packages, such as a lock file, needs every check.
func (p *layout) affected(vs []Validator, changed []string) []Validator {
	dirs, touched := p.Dirs(), map[string]bool{}
	for _, f := range changed {
		inside := slices.DeleteFunc(packages.Above(path.Dir(f)), func(dir string) bool {
			return !slices.Contains(dirs, dir)
		})
		if len(inside) == 0 {
			return vs
		}
		for _, dir := range inside {
			touched[dir] = true
		}
	}
	if len(touched) == 0 {
		return vs
	}
	users := p.dependents(dirs)
	for left := slices.Collect(maps.Keys(touched)); len(left) > 0; left = left[1:] {
		for _, dir := range users[left[0]] {
			if !touched[dir] {
				touched[dir], left = true, append(left, dir)
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(vs), func(v Validator) bool {
		dir := cmp.Or(v.Dir, ".")
		return dir != "." && !touched[dir] && len(v.given) == 0 && v.starts()
	})
}

// packageName matches the package's name in a manifest.
var packageName = pattern.New(`(?m)(?:^|[{,(])\s*(?:module\s+|"?name"?\s*[:=]\s*)["']?([^\s"',)]+)` +
	`|<artifactId>([^<]+)</artifactId>`)

var mavenParent = pattern.New(`(?s)<parent>.*?</parent>`)

// nameOf returns the name of the package in dir for other packages: that of its manifests, else its directory.
func (p *layout) nameOf(dir, manifests string) string {
	if name := gjson.Get(p.Read(path.Join(dir, "package.json")), "name").String(); name != "" {
		return name
	}
	m := packageName().FindStringSubmatch(mavenParent().ReplaceAllString(manifests, ""))
	if m == nil {
		return path.Base(dir)
	}
	return m[1] + m[2]
}

// dependents maps each package to the packages that name it in a manifest or import it. In a workspace, a package can
// import another one that its manifest does not name.
func (p *layout) dependents(dirs []string) map[string][]string {
	plain := func(s string) string { return strings.NewReplacer("_", "-", `\`, "/").Replace(strings.ToLower(s)) }
	manifests, imports := map[string]string{}, map[string]map[string]bool{}
	for _, dir := range dirs {
		imports[dir] = map[string]bool{}
		for _, f := range packages.Owned(p.Files, dir, dirs) {
			switch text := path.Join(dir, f); {
			case path.Dir(f) == "." && project.IsManifest(f):
				manifests[dir] += p.Read(text) + "\n"
			case project.IsCode(f):
				packages.Mentions(plain(p.Read(text)), func(name string) { imports[dir][name] = true })
			}
		}
	}
	users, texts := map[string][]string{}, map[string]string{}
	for dir, text := range manifests {
		texts[dir] = plain(text)
	}
	for _, on := range dirs {
		name, last := plain(p.nameOf(on, manifests[on])), "/"+plain(path.Base(on))
		manifest := regexp.MustCompile(`(?m)(?:^\s*(?:require\s+)?|["'/:>])` + regexp.QuoteMeta(name) +
			`(?:["'/\[<>=~!;.:)]|\s*=|\s+v\d)|` + regexp.QuoteMeta(last) + `["'/]`)
		for _, dir := range dirs {
			text := texts[dir]
			may := strings.Contains(text, name) || strings.Contains(text, last)
			if dir != on && (imports[dir][name] || imports[dir][last] || may && manifest.MatchString(text)) {
				users[on] = append(users[on], dir)
			}
		}
	}
	return users
}
