package gitx

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// productNames are the build products that are left out of what is staged even
// where no .gitignore covers them.
var productNames = map[string]bool{
	"__pycache__": true, ".pytest_cache": true, ".mypy_cache": true, ".ruff_cache": true, "node_modules": true, ".venv": true,
}

// cargoTarget is a build product too, beside a Cargo.toml.
const cargoTarget = "target"

// productRoot returns the part of p that is a build product, "" if none is. p
// is relative to top and in git's form; with a slash at its end it is a
// directory.
func productRoot(top, p string) string {
	for start := 0; start < len(p); {
		end := strings.IndexByte(p[start:], '/')
		isDir := end >= 0
		if !isDir {
			end = len(p) - start
		}
		end += start
		// A symlink to a node_modules or .venv elsewhere is the product itself; a
		// plain file of that name is not.
		if isProduct(top, p[:end]) && (isDir || isLink(filepath.Join(top, p[:end]))) {
			return p[:end]
		}
		start = end + 1
	}
	return ""
}

func isProduct(top, p string) bool {
	name := path.Base(p)
	if name != cargoTarget {
		return productNames[name]
	}
	_, err := os.Lstat(filepath.Join(top, path.Dir(p), "Cargo.toml"))
	return err == nil
}

func isLink(p string) bool {
	fi, err := os.Lstat(p)
	return err == nil && fi.Mode()&os.ModeSymlink != 0
}

// productRules are the ignore rules for the products. That a target is Cargo's
// no rule can say, so they cover every one.
func productRules() string {
	return strings.Join(slices.Sorted(maps.Keys(productNames)), "/\n") + "/\n" + cargoTarget + "/\n"
}

// productRulesBut are the rules once it is known which target directories there
// are: they cover those of the found products and no other.
func productRulesBut(found []string) string {
	rules := strings.TrimSuffix(productRules(), cargoTarget+"/\n")
	for _, p := range found {
		if path.Base(p) == cargoTarget {
			rules += exactRule(p) + "\n"
		}
	}
	return rules
}

// exactRule returns the ignore rule that matches exactly this path. A newline
// cannot stand in a rule; ? stands for it.
func exactRule(p string) string {
	var b strings.Builder
	b.WriteByte('/')
	for i := range len(p) {
		switch p[i] {
		case '\\', '*', '?', '[', ' ', '\t', '\r':
			b.WriteByte('\\')
			b.WriteByte(p[i])
		case '\n':
			b.WriteByte('?')
		default:
			b.WriteByte(p[i])
		}
	}
	return b.String()
}
