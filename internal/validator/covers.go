package validator

import (
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// covers reports whether a file, a directory or a pattern in a test script stands for a file.
func covers(pattern, file string) bool {
	pattern = path.Clean(pattern)
	if pattern == "." || file == pattern || strings.HasPrefix(file, pattern+"/") {
		return true
	}
	ok, err := doublestar.Match(pattern, file)
	return err == nil && ok
}
