package packages

import (
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

var mention = pattern.New(`["'<]([^"'<>\s]{1,200})["'>]|(?m:^)\s*(?:import|from)\s+([\w.-]+)`)

// Mentions calls see with each possible package name in a source file: quoted paths and imported modules, each of their
// beginnings, and each part after a slash. Such a part keeps the slash: "/core".
func Mentions(source string, see func(name string)) {
	for _, m := range mention().FindAllStringSubmatch(source, -1) {
		start := 0
		for i, r := range m[1] + "/" {
			if r == '/' {
				see(m[1][:i])
				see(m[1][start:i])
				start = i
			}
		}
		module := ""
		for part := range strings.SplitSeq(m[2], ".") {
			module = strings.TrimPrefix(module+"."+part, ".")
			see(module)
		}
	}
}
