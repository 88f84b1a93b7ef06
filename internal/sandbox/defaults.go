package sandbox

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// hiddenInHome hold what opens other doors than this machine's. Those of git's credential helpers are among them.
var hiddenInHome = []string{".ssh", ".gnupg", ".aws", ".netrc", "_netrc", ".git-credentials", ".git-credential-cache",
	".cache/git/credential", ".config/git/credentials", ".config/gh/hosts.yml"}

// helpers are sockets of well-known helpers, beside what lies in the user's runtime directory.
var helpers = []string{"/run/docker.sock", "/run/podman", "/run/containerd", "/run/crio", "/run/dbus",
	"/run/systemd/private", "/run/screen", "/run/libvirt", "/tmp/.X11-unix"}

// Default is what holds for everyone: a home without its secrets and with the caches of build tools, and none of root,
// where sessions are. getenv is the environment, installed reports whether a program is.
func Default(getenv func(string) string, installed func(string) bool, root string) *Box {
	home := getenv("HOME")
	uid := strconv.Itoa(os.Getuid())
	b := &Box{Hide: []string{root}, Sockets: append([]string{
		cmp.Or(getenv("XDG_RUNTIME_DIR"), "/run/user/"+uid),
		filepath.Join(cmp.Or(getenv("TMUX_TMPDIR"), "/tmp"), "tmux-"+uid),
	}, helpers...)}
	for _, name := range hiddenInHome {
		b.Hide = append(b.Hide, filepath.Join(home, name))
	}
	for _, dir := range []string{getenv("GNUPGHOME"), under(getenv("XDG_CONFIG_HOME"), "git/credentials"),
		under(getenv("XDG_CONFIG_HOME"), "gh/hosts.yml"), under(getenv("XDG_CACHE_HOME"), "git/credential")} {
		if dir != "" {
			b.Hide = append(b.Hide, dir)
		}
	}
	for _, dir := range b.Hide {
		if strings.HasSuffix(dir, "git/credential") || strings.HasSuffix(dir, ".git-credential-cache") ||
			strings.HasSuffix(dir, ".gnupg") {
			b.Sockets = append(b.Sockets, dir)
		}
	}
	b.Hide = append(b.Hide, b.Sockets[0])
	b.Write = caches(getenv, installed, home)
	return b
}

func under(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

// caches are the directories that build tools fill on the way. Those of a tool that is installed are made where they
// are not there yet: a path can be allowed only once it exists.
func caches(getenv func(string) string, installed func(string) bool, home string) []string {
	cache := cmp.Or(getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache"))
	if runtime.GOOS == "darwin" {
		cache = filepath.Join(home, "Library", "Caches")
	}
	gopath, _, _ := strings.Cut(cmp.Or(getenv("GOPATH"), filepath.Join(home, "go")), string(os.PathListSeparator))
	cargo := cmp.Or(getenv("CARGO_HOME"), filepath.Join(home, ".cargo"))
	var out []string
	for tool, dirs := range map[string][]string{
		"go": {cmp.Or(getenv("GOCACHE"), filepath.Join(cache, "go-build")),
			cmp.Or(getenv("GOMODCACHE"), filepath.Join(gopath, "pkg", "mod")), filepath.Join(gopath, "pkg", "sumdb")},
		"npm":   {cmp.Or(getenv("npm_config_cache"), getenv("NPM_CONFIG_CACHE"), filepath.Join(home, ".npm"))},
		"pip3":  {cmp.Or(getenv("PIP_CACHE_DIR"), filepath.Join(cache, "pip"))},
		"cargo": {filepath.Join(cargo, "registry"), filepath.Join(cargo, "git")},
	} {
		for _, dir := range dirs {
			if filepath.IsAbs(dir) && (!installed(tool) || os.MkdirAll(dir, 0o755) == nil) {
				out = append(out, dir)
			}
		}
	}
	for _, lock := range []string{".package-cache", ".package-cache-mutate", ".global-cache"} {
		out = append(out, filepath.Join(cargo, lock))
	}
	return out
}
