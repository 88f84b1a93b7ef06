package project

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Cache is a directory or file that a tool fills and keeps from one project to the next.
type Cache struct {
	Tool  string   // program of the cache; "" if the cache need not be created
	Moved []string // variables with another path; the first that is set counts
	In    Base     // base of the default path
	Dir   string   // default path below In
}

// Base is a directory below which tools keep caches.
type Base struct {
	env   string            // the variable with its path, or with a list whose first path counts
	below string            // path below the home directory without the variable
	on    map[string]string // other paths by operating system, which ignore the variable
}

var (
	home      = Base{}
	userCache = Base{env: "XDG_CACHE_HOME", below: ".cache", on: map[string]string{"darwin": "Library/Caches"}}
	xdgCache  = Base{env: "XDG_CACHE_HOME", below: ".cache"} // on every system
	xdgData   = Base{env: "XDG_DATA_HOME", below: ".local/share", on: map[string]string{"darwin": "Library"}}
	gopath    = Base{env: "GOPATH", below: "go"}
	cargoHome = Base{env: "CARGO_HOME", below: ".cargo"}
)

// Path returns the cache's path for an environment.
func (c Cache) Path(getenv func(string) string) string {
	for _, name := range c.Moved {
		if dir := getenv(name); dir != "" {
			return dir
		}
	}
	return filepath.Join(c.In.path(getenv), filepath.FromSlash(c.Dir))
}

func (b Base) path(getenv func(string) string) string {
	if below, ok := b.on[runtime.GOOS]; ok {
		return filepath.Join(getenv("HOME"), filepath.FromSlash(below))
	}
	first := ""
	if b.env != "" {
		first, _, _ = strings.Cut(getenv(b.env), string(os.PathListSeparator))
	}
	return cmp.Or(first, filepath.Join(getenv("HOME"), filepath.FromSlash(b.below)))
}

// At is a cache with its path in an environment.
type At struct{ Tool, Dir string }

// Caches returns the caches of all kinds.
func Caches(getenv func(string) string) (out []At) {
	for _, kind := range Kinds {
		for _, c := range kind.Caches {
			out = append(out, At{c.Tool, c.Path(getenv)})
		}
	}
	return out
}
