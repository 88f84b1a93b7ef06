package gitx

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"
)

// ConfigEntry is one setting of git's configuration.
type ConfigEntry struct {
	Key    string // section and name in lower case, the part between as written
	Value  string // "true" for a key without a value, as git reads it
	Origin string // such as "file:/home/a/.gitconfig" or "command line:"
	Scope  string // system, global, local, worktree or command
}

// ConfigList returns the user's configuration, in the order in which later
// entries win: that of the repository with this common directory, or, if it is
// "", what holds outside of any repository. `git -c` counts.
func (g *Git) ConfigList(ctx context.Context, common string) ([]ConfigEntry, error) {
	if common == "" {
		// A git directory that is none keeps git from looking for one.
		common = os.DevNull
	}
	c := inRepo(common, "config", "--list", "-z", "--show-origin", "--show-scope")
	if common == os.DevNull {
		c.dir = "/"
	}
	// Without the harness's own settings, which are no news to anyone.
	c.env = g.env.plain
	out, err := g.read(ctx, c)
	if err != nil {
		return nil, err
	}
	return parseConfig(fields(out)), nil
}

// parseConfig reads triples of scope, origin and "key\nvalue".
func parseConfig(f []string) []ConfigEntry {
	var entries []ConfigEntry
	for ; len(f) >= 3; f = f[3:] {
		key, value, has := strings.Cut(f[2], "\n")
		if !has {
			value = "true"
		}
		entries = append(entries, ConfigEntry{Key: key, Value: value, Origin: f[1], Scope: f[0]})
	}
	return entries
}

// helperPatience is how long a credential helper may take: some ask a server.
const helperPatience = 30 * time.Second

// CredentialFill asks the credential helpers of the user, and of the repository
// with this common directory unless it is "", for the user name and password of
// a URL. Nobody is prompted, and a helper that waits for someone all the same is
// ended. The error is ErrNoCredential if no helper knows.
func (g *Git) CredentialFill(ctx context.Context, common, url string) (username, password string, err error) {
	if url == "" || strings.ContainsAny(url, "\n\x00") {
		return "", "", fmt.Errorf("%q: %w", url, ErrNoCredential)
	}
	c := command{dir: "/", args: []string{"credential", "fill"}}
	if common != "" {
		c = inRepo(common, c.args...)
	}
	c.stdin = []byte("url=" + url + "\n\n")
	ctx, cancel := context.WithTimeout(ctx, g.asking)
	defer cancel()
	out, err := g.read(ctx, c)
	for line := range strings.Lines(string(out)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		switch key {
		case "username":
			username = value
		case "password":
			password = value
		}
	}
	if exitCode(err) == 128 || err == nil && password == "" {
		return "", "", fmt.Errorf("%s: %w", url, ErrNoCredential)
	}
	return username, password, err
}

// Editor returns the command that git would open a file with for the user:
// GIT_EDITOR, core.editor, VISUAL, EDITOR. Everywhere else of this package the
// editor is one that does nothing; environ is the user's own environment.
func (g *Git) Editor(ctx context.Context, common string, environ []string) (string, error) {
	c := command{dir: "/", args: []string{"var", "GIT_EDITOR"}}
	if common != "" {
		c = inRepo(common, c.args...)
	}
	c.env = environ
	name, err := g.line(ctx, c)
	return strings.TrimSpace(name), err
}

// settings is what the harness needs to know of a repository's configuration.
type settings struct {
	identity  []string // variables to commit with; none if the user has an identity
	excludes  string   // the user's global ignore file
	hooksPath string   // "" for the default
}

// fallbackName and fallbackEmail commit where the user has no identity.
const (
	fallbackName  = "git-tilth"
	fallbackEmail = "git-tilth@localhost"
)

// settingsAt reads the settings that hold in dir, once per directory.
func (g *Git) settingsAt(ctx context.Context, dir string, c command) (*settings, error) {
	g.known.mu.Lock()
	s := g.known.settings[dir]
	g.known.mu.Unlock()
	if s != nil {
		return s, nil
	}
	c.args = append(c.args, "config", "-z", "--get-regexp", `^((user|author|committer)\.(name|email)|core\.(excludesfile|hookspath))$`)
	c.env = g.env.plain
	out, err := g.read(ctx, c)
	if err != nil && exitCode(err) != 1 { // 1: none is set
		return nil, err
	}
	values := map[string]string{}
	for _, f := range fields(out) {
		key, value, _ := strings.Cut(f, "\n")
		values[key] = value
	}
	s = &settings{
		identity:  g.missingIdentity(values),
		excludes:  g.userPath(dir, values["core.excludesfile"]),
		hooksPath: g.userPath(dir, values["core.hookspath"]),
	}
	if _, set := values["core.excludesfile"]; !set {
		s.excludes = g.defaultExcludes()
	}
	// Not for a directory that is about to become a worktree.
	if _, err := gitDirAt(dir); err == nil {
		g.known.mu.Lock()
		g.known.settings[dir] = s
		g.known.mu.Unlock()
	}
	return s, nil
}

// missingIdentity returns the variables to set so that git does not refuse to
// commit, or make an identity up from the host's name.
func (g *Git) missingIdentity(values map[string]string) []string {
	var vars []string
	for _, role := range []string{"author", "committer"} {
		prefix := "GIT_" + strings.ToUpper(role)
		name := firstOf(lookup(g.env.raw, prefix+"_NAME"), values[role+".name"], values["user.name"])
		email := firstOf(lookup(g.env.raw, prefix+"_EMAIL"), values[role+".email"], values["user.email"], lookup(g.env.raw, "EMAIL"))
		if name == "" || email == "" {
			vars = append(vars, prefix+"_NAME="+fallbackName, prefix+"_EMAIL="+fallbackEmail)
		}
	}
	return vars
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// userPath expands a path of the configuration as git does.
func (g *Git) userPath(dir, p string) string {
	switch {
	case p == "" || filepath.IsAbs(p):
		return p
	case p == "~" || strings.HasPrefix(p, "~/"):
		return filepath.Join(lookup(g.env.raw, "HOME"), p[1:])
	case p[0] == '~':
		name, rest, _ := strings.Cut(p[1:], "/")
		if u, err := user.Lookup(name); err == nil {
			return filepath.Join(u.HomeDir, rest)
		}
	}
	return filepath.Join(dir, p)
}

// defaultExcludes is where git looks for global ignore rules by default.
func (g *Git) defaultExcludes() string {
	base := lookup(g.env.raw, "XDG_CONFIG_HOME")
	if base == "" {
		base = filepath.Join(lookup(g.env.raw, "HOME"), ".config")
	}
	return filepath.Join(base, "git", "ignore")
}

// identity returns the variables that commits in dir need, none if dir is no
// repository.
func (g *Git) identity(dir string) []string {
	if g.dry {
		return nil
	}
	c := command{dir: dir, more: []string{g.ceiling(dir)}}
	s, err := g.settingsAt(context.Background(), dir, c)
	if err != nil {
		return nil
	}
	return s.identity
}
