package sandbox

import (
	"strconv"
	"strings"
)

// profile returns the box in the language of macOS's sandbox. The last matching rule applies.
func (b *Box) profile() string {
	var out strings.Builder
	out.WriteString("(version 1)\n(allow default)\n(deny file-write*)\n" +
		"(deny signal (target others))\n(deny process-info* (target others))\n(deny mach-priv-task-port)\n")
	rule := func(action string, kind string, paths []string) {
		for _, path := range paths {
			out.WriteString("(" + action + " (" + kind + " " + strconv.Quote(path) + "))\n")
		}
	}
	rule("deny file-read*", "subpath", b.links.reals(b.Hide))
	rule("deny network-outbound", "subpath", b.links.reals(b.Sockets))
	rule("allow file-read*", "subpath", b.links.reals(b.readable()))
	rule("allow file-read* file-write*", "subpath", append(b.outermost(), "/dev"))
	// The user's terminals, but not those created by a command.
	out.WriteString(`(deny file-read* file-write* (require-all (regex #"^/dev/ttys[0-9]+") ` +
		"(require-not (extension \"com.apple.sandbox.pty\"))))\n")
	if b.NoNetwork {
		out.WriteString(
			"(deny network*)\n(allow network* (local unix-socket))\n(allow network* (remote unix-socket))\n")
		rule("deny network-outbound", "subpath", b.links.reals(b.Sockets))
	}
	return out.String()
}
