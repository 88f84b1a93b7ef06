package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/project"
)

// Opening is a path that may be read although it is in a closed directory, with the reason.
type Opening struct{ Path, Why string }

// Config is the input of Default.
type Config struct {
	Getenv    func(string) string
	Installed func(string) bool // reports whether a program is installed
	Root      string            // root of the sessions
	Repo      []string          // the repository, and the user's working tree
	Git       []string          // files that git's configuration names
	Read      []string          // opened by the user
	Hide      []string          // closed by the user
}

// homeFiles are files that tools read in a home directory: their settings, and packages that python installed there.
var homeFiles = []Opening{
	{".gitconfig", "git's settings"}, {".config/git", "git's settings"}, {".config/go", "go's settings"},
	{".config/pip", "pip's settings"}, {".config/uv", "uv's settings"}, {".config/mise", "mise's settings"},
	{".config/pnpm", "pnpm's settings"}, {".tool-versions", "versions of tools"}, {".asdfrc", "asdf's settings"},
	{".mise.toml", "versions of tools"}, {".python-version", "versions of tools"}, {".nvmrc", "versions of tools"},
	{".condarc", "conda's settings"}, {".rustup", "toolchains of Rust"}, {".cargo/bin", "toolchains of Rust"},
	{".cargo/config.toml", "cargo's settings"}, {".local/lib", "the user's packages of python"},
	{".local/share/uv/python", "uv's pythons"}, {".local/state/mise", "paths that mise trusts"},
	{".local/share/direnv", "paths that direnv allows"},
}

// toolVars name directories of tools.
var toolVars = []string{"JAVA_HOME", "GOROOT", "RUSTUP_HOME", "CARGO_HOME", "ANDROID_HOME", "ANDROID_SDK_ROOT",
	"NVM_DIR", "NVM_BIN", "FNM_DIR", "VOLTA_HOME", "PYENV_ROOT", "RBENV_ROOT", "ASDF_DIR", "ASDF_DATA_DIR",
	"MISE_DATA_DIR", "CONDA_PREFIX", "VIRTUAL_ENV", "SDKMAN_DIR", "M2_HOME", "MAVEN_HOME", "GRADLE_HOME",
	"DOTNET_ROOT", "FLUTTER_ROOT", "BUN_INSTALL", "DENO_INSTALL", "PNPM_HOME", "UV_PYTHON_INSTALL_DIR"}

// closed returns the closed directories, in which only open paths are readable: the home directory, the sessions,
// other programs' temporary files.
func (cfg Config) closed() []string {
	dirs := []string{cfg.Root, cfg.Getenv("HOME"), "/tmp", "/var/tmp", "/private/tmp", os.TempDir(), "/run"}
	return slices.DeleteFunc(dirs, func(dir string) bool { return !filepath.IsAbs(dir) || filepath.Clean(dir) == "/" })
}

// openings returns the open paths in the closed directories.
func (cfg Config) openings() (out []Opening, trails []string) {
	home, links := cfg.Getenv("HOME"), links{}
	closed, secret := links.reals(cfg.closed()), links.reals(cfg.secret())
	open := func(path, why string) {
		if !filepath.IsAbs(path) {
			return
		}
		// The directories above an open path stay closed.
		trails = append(trails, path)
		path = links.real(path)
		inside := slices.ContainsFunc(closed, func(dir string) bool { return path != dir && below(path, dir) })
		shut := slices.ContainsFunc(secret, func(dir string) bool { return below(path, dir) })
		if _, err := os.Lstat(path); err != nil || !inside || shut || slices.Contains(closed, path) {
			return
		}
		if !slices.ContainsFunc(out, func(o Opening) bool { return o.Path == path }) {
			out = append(out, Opening{path, why})
		}
	}
	add := func(why string, paths ...string) {
		for _, path := range paths {
			open(path, why)
		}
	}
	add("the repository", cfg.Repo...)
	for _, dir := range filepath.SplitList(cfg.Getenv("PATH")) {
		if filepath.IsAbs(dir) {
			cfg.program(dir, closed, links, func(path string) { add("PATH has "+dir, path) })
		}
	}
	for _, name := range toolVars {
		if dir := cfg.Getenv(name); !isHome(dir, home) {
			add(name, dir)
		}
	}
	for _, o := range homeFiles {
		add(o.Why, filepath.Join(home, o.Path))
	}
	add("git's settings", under(cfg.Getenv("XDG_CONFIG_HOME"), "git"))
	for _, c := range project.Caches(cfg.Getenv) {
		add("a cache of "+c.Tool, c.Dir)
	}
	add("git's settings name it", cfg.Git...)
	add("tilth.sandboxRead", cfg.Read...)
	add("names of hosts", "/etc/resolv.conf")
	add("names of users and hosts", "/run/nscd/socket", "/run/systemd/userdb", "/run/systemd/resolve")
	return out, trails
}

// isHome reports whether a directory is the home directory, contains it, or is ~/.local.
func isHome(dir, home string) bool {
	return below(home, filepath.Clean(dir)) || filepath.Clean(dir) == filepath.Join(home, ".local")
}

// program opens the files that programs in a directory of PATH need: the directory above a bin or shims, unless that is
// the home directory, and the targets of links.
func (cfg Config) program(dir string, closed []string, links links, open func(string)) {
	home := cfg.Getenv("HOME")
	at := links.real(dir)
	if !slices.ContainsFunc(closed, func(c string) bool { return below(at, c) || below(dir, c) }) {
		return
	}
	for _, dir := range []string{filepath.Clean(dir), links.real(dir)} {
		open(dir)
		above := filepath.Dir(dir)
		if base := filepath.Base(dir); (base == "bin" || base == "shims") && !isHome(above, home) {
			open(above)
			return
		}
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		open(filepath.Join(dir, e.Name()))
		to := links.real(filepath.Join(dir, e.Name()))
		if in, _, ok := strings.Cut(to, "/node_modules/"); ok {
			open(in + "/node_modules")
		} else if above := filepath.Dir(filepath.Dir(to)); filepath.Base(filepath.Dir(to)) == "bin" &&
			!isHome(above, home) {
			open(above)
		}
	}
}

// Interpreters opens the targets of the python links of a virtual environment in a tree. The tree is a worker's, so a
// link opens only an installed python, by its directory and name.
func (b *Box) Interpreters(tree string) *Box {
	if b == nil {
		return nil
	}
	var open []string
	var envs []string
	for _, env := range project.Venvs {
		envs = append(envs, filepath.Join(tree, env))
	}
	if b.place != nil {
		envs = append(envs, b.place.Installed...)
	}
	for _, env := range envs {
		links, _ := filepath.Glob(filepath.Join(env, "bin", "python*"))
		for _, link := range links {
			to := real(link)
			fi, err := os.Lstat(to)
			if err != nil || !fi.Mode().IsRegular() || fi.Mode()&0o111 == 0 ||
				!strings.HasPrefix(filepath.Base(to), "python") || filepath.Base(filepath.Dir(to)) != "bin" {
				continue
			}
			if above := filepath.Dir(filepath.Dir(to)); !slices.Contains(open, above) && !isHome(above, b.home) {
				open = append(open, above)
			}
		}
	}
	return b.Reading(open...)
}

// credentials are paths in a home directory that give access to other machines or accounts. They stay closed even in
// an open directory.
var credentials = []string{".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker/config.json", ".netrc", "_netrc",
	".git-credentials", ".git-credential-cache", ".cache/git/credential", ".config/git/credentials",
	".config/gh/hosts.yml", ".config/glab-cli", ".config/hub", ".config/gcloud", ".config/op", ".npmrc", ".yarnrc.yml",
	".pypirc", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml",
	".m2/settings-security.xml", ".gradle/gradle.properties", ".composer/auth.json", ".config/composer/auth.json",
	".config/pypoetry/auth.toml", ".local/share/uv/credentials", ".terraform.d/credentials.tfrc.json", ".vault-token",
	".pgpass", ".my.cnf", ".local/share/keyrings", ".password-store", ".config/rclone"}

// movedCredentials are credentials at paths that variables name.
var movedCredentials = []struct{ env, name string }{
	{"GNUPGHOME", ""}, {"XDG_CONFIG_HOME", "git/credentials"}, {"XDG_CONFIG_HOME", "gh/hosts.yml"},
	{"XDG_CACHE_HOME", "git/credential"}, {"CARGO_HOME", "credentials"}, {"CARGO_HOME", "credentials.toml"},
	{"DOCKER_CONFIG", ""}, {"KUBECONFIG", ""}, {"AWS_SHARED_CREDENTIALS_FILE", ""}, {"NPM_CONFIG_USERCONFIG", ""},
	{"NETRC", ""}, {"PGPASSFILE", ""},
}

// secret returns the credential files and the paths that the user closes.
func (cfg Config) secret() []string {
	out := slices.Clone(cfg.Hide)
	for _, name := range credentials {
		out = append(out, filepath.Join(cfg.Getenv("HOME"), name))
	}
	for _, c := range movedCredentials {
		if path := under(cfg.Getenv(c.env), c.name); path != "" {
			out = append(out, path)
		}
	}
	return out
}
