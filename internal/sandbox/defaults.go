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
func Default(cfg Config) *Box {
	open, trails := cfg.openings()
	runtime := cmp.Or(cfg.Getenv("XDG_RUNTIME_DIR"), "/run/user/"+strconv.Itoa(os.Getuid()))
	b := &Box{Hide: slices.Concat(cfg.closed(), cfg.secret(), []string{runtime}), Open: open, trails: trails,
		home: real(cfg.Getenv("HOME")), secret: cfg.secret()}
	b.Sockets = []string{runtime, "/tmp/.X11-unix",
		filepath.Join(cmp.Or(cfg.Getenv("TMUX_TMPDIR"), "/tmp"), "tmux-"+strconv.Itoa(os.Getuid()))}
	for _, dir := range b.Hide {
		if strings.HasSuffix(dir, "git/credential") || strings.HasSuffix(dir, ".git-credential-cache") ||
			strings.HasSuffix(dir, ".gnupg") || dir == cfg.Getenv("GNUPGHOME") {
			b.Sockets = append(b.Sockets, dir)
		}
	}
	b.Caches = caches(cfg)
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
func caches(cfg Config) []string {
	var out []string
	for _, c := range project.Caches(cfg.Getenv) {
		make := c.Tool != "" && cfg.Installed(c.Tool)
		if filepath.IsAbs(c.Dir) && (!make || os.MkdirAll(c.Dir, 0o755) == nil) {
			out = append(out, c.Dir)
		}
	}
	return out
}
