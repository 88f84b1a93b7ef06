package gitx

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/project"
)

// ProductRoot returns the part of p that is a build product or a tool's leftover, or "". p is relative to top and in
// git's form, with a slash at the end of a directory.
func ProductRoot(top, p string) string {
	for start := 0; start < len(p); {
		end := strings.IndexByte(p[start:], '/')
		isDir := end >= 0
		if !isDir {
			end = len(p) - start
		}
		end += start
		// A symlink to a node_modules or .venv elsewhere is a product; a plain file with that name is not.
		if isProduct(top, p[:end]) && (isDir || isLink(filepath.Join(top, p[:end]))) ||
			!isDir && project.IsLeftover(path.Base(p)) {
			return p[:end]
		}
		start = end + 1
	}
	return ""
}

func isProduct(top, p string) bool {
	return project.IsProduct(path.Base(p)) || project.IsBuilt(p, project.OnDisk(top))
}

func isLink(p string) bool {
	fi, err := os.Lstat(p)
	return err == nil && fi.Mode()&os.ModeSymlink != 0
}

// productRules are ignore rules for build products, which are never staged, even if no .gitignore covers them. No rule
// can recognise Cargo's target directory, so they cover every directory with this name.
func productRules() string {
	return directoryRules(slices.Concat(project.Products, project.Built))
}

// directoryRules returns the ignore rules for directories and for files that tools leave.
func directoryRules(dirs []string) string {
	return strings.Join(dirs, "/\n") + "/\n" + strings.Join(project.Leftovers, "\n") + "\n"
}

// productRulesBut returns the rules once the target directories are known. They cover only those that are products.
func productRulesBut(found []string) string {
	rules := directoryRules(project.Products)
	for _, p := range found {
		if slices.Contains(project.Built, path.Base(p)) {
			rules += exactRule(p) + "\n"
		}
	}
	return rules
}

// exactRule returns the ignore rule that matches only this path. A rule cannot contain a newline; ? matches it.
func exactRule(p string) string { return "/" + ruleQuoter.Replace(p) }

var ruleQuoter = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, " ", `\ `,
	"\t", "\\\t", "\r", "\\\r", "\n", "?")
