package sandbox

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/project"
)

// Default returns the sandbox that every run starts from: a closed home directory, except files that tools need, and
// the caches of build tools.
func Default(g Given) *Box {
	open, trails := g.openings()
	runtime := cmp.Or(g.Getenv("XDG_RUNTIME_DIR"), "/run/user/"+strconv.Itoa(os.Getuid()))
	b := &Box{Hide: slices.Concat(g.closed(), g.secret(), []string{runtime}), Open: open, trails: trails,
		home: real(g.Getenv("HOME")), secret: g.secret()}
	b.Sockets = []string{runtime, "/tmp/.X11-unix",
		filepath.Join(cmp.Or(g.Getenv("TMUX_TMPDIR"), "/tmp"), "tmux-"+strconv.Itoa(os.Getuid()))}
	for _, dir := range b.Hide {
		if strings.HasSuffix(dir, "git/credential") || strings.HasSuffix(dir, ".git-credential-cache") ||
			strings.HasSuffix(dir, ".gnupg") || dir == g.Getenv("GNUPGHOME") {
			b.Sockets = append(b.Sockets, dir)
		}
	}
	b.Caches = caches(g)
	return b
}

func under(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

// caches returns the cache directories of build tools. It creates missing ones of installed tools, because only an
// existing path can be allowed.
func caches(g Given) []string {
	var out []string
	for _, c := range project.Caches(g.Getenv) {
		make := c.Tool != "" && g.Installed(c.Tool)
		if filepath.IsAbs(c.Dir) && (!make || os.MkdirAll(c.Dir, 0o755) == nil) {
			out = append(out, c.Dir)
		}
	}
	return out
}
