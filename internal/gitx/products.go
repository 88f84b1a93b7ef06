package gitx

import (
	"os"
	"path/filepath"
	"strings"
)

// productNames are the build products that are left out of what is staged even
// where no .gitignore covers them. Cargo's target is one of them only beside a
// Cargo.toml.
var productNames = map[string]bool{
	"__pycache__": true, ".pytest_cache": true, ".mypy_cache": true, ".ruff_cache": true, "node_modules": true, ".venv": true,
}

const cargoTarget = "target"

// productRoot returns the part of path that is a build product, "" if none is.
// path is relative to root and in git's form; with a slash at its end it is a
// directory.
func productRoot(root, path string) string {
	isDir := strings.HasSuffix(path, "/")
	parts := strings.Split(strings.TrimSuffix(path, "/"), "/")
	for i, name := range parts {
		at := strings.Join(parts[:i+1], "/")
		switch {
		case !productNames[name] && name != cargoTarget:
			continue
		case name == cargoTarget && !hasCargoToml(root, parts[:i]):
			continue
		case i < len(parts)-1 || isDir || isLink(root, at):
			return at
		}
	}
	return ""
}

func hasCargoToml(root string, dir []string) bool {
	_, err := os.Lstat(filepath.Join(root, filepath.Join(dir...), "Cargo.toml"))
	return err == nil
}

// isLink: a symlink to a shared node_modules or .venv is the product itself.
func isLink(root, path string) bool {
	fi, err := os.Lstat(filepath.Join(root, filepath.FromSlash(path)))
	return err == nil && fi.Mode()&os.ModeSymlink != 0
}

// productRules are the ignore rules for the products.
func productRules() string {
	var b strings.Builder
	for name := range productNames {
		b.WriteString(name + "\n")
	}
	b.WriteString(cargoTarget + "\n")
	return b.String()
}
