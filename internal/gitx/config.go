package gitx

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/text"
)

// localVars are the variables of `git rev-parse --local-env-vars` in every supported version, except
// GIT_CONFIG_PARAMETERS and GIT_CONFIG_COUNT, which carry the user's `git -c`. Git exports them to hooks, aliases and
// `rebase -x`; inherited, they send a command to the wrong repository.
var localVars = []string{
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_CONFIG", "GIT_OBJECT_DIRECTORY", "GIT_DIR", "GIT_WORK_TREE",
	"GIT_IMPLICIT_WORK_TREE", "GIT_GRAFT_FILE", "GIT_INDEX_FILE", "GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE",
	"GIT_PREFIX", "GIT_INTERNAL_SUPER_PREFIX", "GIT_SUPER_PREFIX", "GIT_SHALLOW_FILE", "GIT_COMMON_DIR",
}

// steeringVars are not local to a repository but change a command's behaviour: the meaning of pathspecs, the diff
// program, whether refs may be written (in a quarantine of receive-pack), the reflog's text, the password program.
var steeringVars = []string{
	"GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS",
	"GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS", "GIT_QUARANTINE_PATH", "GIT_REFLOG_ACTION", "GIT_NAMESPACE",
	"GIT_OPTIONAL_LOCKS", "GIT_ATTR_SOURCE", "GIT_ASKPASS",
}

// unattendedVars make git and its child processes fail instead of asking the user.
var unattendedVars = []string{
	"GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=true", "GIT_PAGER=cat", "PAGER=cat",
	"SSH_ASKPASS=false", "SSH_ASKPASS_REQUIRE=force", "GCM_INTERACTIVE=never",
	"GIT_MERGE_AUTOEDIT=no",
}

// unattendedConfig is for git's own children and for programs in a worktree: no signing dialog, no maintenance in the
// foreground, no file system monitor that stays behind in the worktree. The reflog, also in bare repositories, tells a
// worker's commits from git-tilth's.
var unattendedConfig = []string{
	"commit.gpgSign=false", "tag.gpgSign=false", "gc.auto=0", "maintenance.auto=false", "core.fsmonitor=false",
	"core.logAllRefUpdates=true", "credential.interactive=false", "core.askPass=false",
}

// commitConfig applies to all of git-tilth's commands, also with the repository's hooks: git accepts any line ends,
// and messages are UTF-8.
var commitConfig = []string{"core.safecrlf=false", "i18n.commitEncoding=UTF-8"}

// ownConfig applies to git-tilth's other commands. They do not enter submodules, have a fixed output format, and run
// no hooks. (A hooks path that is not a directory has no hooks.)
var ownConfig = []string{
	"submodule.recurse=false", "diff.suppressBlankEmpty=false", "trailer.separators=:", "core.commentChar=#",
	"core.hooksPath=/dev/null", "core.ignoreStat=false",
}

// objectVars make git read objects without refs/replace and grafts, because a worker can write those and a clone does
// not get them.
var objectVars = []string{"GIT_NO_REPLACE_OBJECTS=1", "GIT_GRAFT_FILE=/dev/null/none"}

// authorVars are the author variables that `git commit` exports to its hooks.
var authorVars = []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"}

// without returns the entries of env, except those for which goes returns true.
func without(env []string, goes func(name string) bool) []string {
	return slices.DeleteFunc(slices.Clone(env), func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		return goes(name)
	})
}

// withoutKeys returns the lines of env, except keys and git-tilth's settings.
func withoutKeys(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		return text.HoldsKey(entry) || proc.IsSetting(entry)
	})
}

// setting matches one setting in GIT_CONFIG_PARAMETERS in git's quoting.
var setting = pattern.New(`'((?:[^']|'\\['!]')*)'(?:=(?:'(?:[^']|'\\['!]')*')?)?`)

// withoutKeySettings removes credentials from the settings of `git -c` in env, for example an http.extraHeader. git
// accepts no gap in the numbers of GIT_CONFIG_KEY_0, so removed settings become empty ones.
func withoutKeySettings(env []string) []string {
	env = slices.Clone(env)
	for i, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		number, isValue := strings.CutPrefix(name, "GIT_CONFIG_VALUE_")
		_, isKey := strings.CutPrefix(name, "GIT_CONFIG_KEY_")
		switch {
		case name == "GIT_CONFIG_PARAMETERS":
			env[i] = name + "=" + setting().ReplaceAllStringFunc(value, func(s string) string {
				key, _, _ := strings.Cut(setting().FindStringSubmatch(s)[1], "=")
				if text.IsKeySetting(key) || text.HoldsKey("="+s) {
					return ""
				}
				return s
			})
		case isValue && (text.IsKeySetting(proc.Getenv(env, "GIT_CONFIG_KEY_"+number)) || text.HoldsKey(entry)):
			env[i] = name + "="
		case isKey && text.HoldsKey(entry):
			env[i] = name + "=tilth-dropped.key"
		}
	}
	return env
}

// Reflog actions, the text before the colon.
const (
	reflogHarness = "tilth"
	reflogWorker  = "tilth-worker"
)

// environment has the scrubbed environment in all forms that commands need.
type environment struct {
	raw   []string // as given to New
	keys  []string // plain with the user's keys, for commands that run credential helpers
	asked []string // for listing the user's config, which starts no program: with all of `git -c`
	plain []string // scrubbed, unattended, the user's config only
	own   []string // for git-tilth's commands: no hooks, C locale
	hooks []string // for commands that run the repository's hooks: the user's locale
	child []string // for programs that work in a worktree
}

func newEnvironment(environ []string) environment {
	// In a commit hook, git exports the author and date of the user's commit. They must not apply to git-tilth's
	// commits.
	inHook := proc.Getenv(environ, "GIT_INDEX_FILE") != ""
	plain := append(without(environ, func(name string) bool {
		return slices.Contains(localVars, name) || slices.Contains(steeringVars, name) ||
			inHook && slices.Contains(authorVars, name)
	}), unattendedVars...)
	params := proc.Getenv(environ, "GIT_CONFIG_PARAMETERS")
	open := withoutKeySettings(plain)
	openParams := proc.Getenv(open, "GIT_CONFIG_PARAMETERS")
	bare := with(withoutKeys(open), objectVars...)
	return environment{
		raw:   environ,
		keys:  with(plain, "LC_ALL=C", configParameters(params, unattendedConfig)),
		asked: with(plain, "LC_ALL=C"),
		plain: with(bare, "LC_ALL=C"),
		own: with(bare, "LC_ALL=C", "GIT_REFLOG_ACTION="+reflogHarness,
			configParameters(openParams, unattendedConfig, commitConfig, ownConfig)),
		hooks: with(bare, "GIT_REFLOG_ACTION="+reflogHarness,
			configParameters(openParams, unattendedConfig, commitConfig)),
		child: with(open, "GIT_REFLOG_ACTION="+reflogWorker, configParameters(openParams, unattendedConfig)),
	}
}

// configParameters returns GIT_CONFIG_PARAMETERS with added settings ("key=value"). This variable overrides
// GIT_CONFIG_COUNT and every file. Unlike -c it keeps the commands of -v short.
func configParameters(before string, lists ...[]string) string {
	var words []string
	if before != "" {
		words = append(words, before)
	}
	for _, list := range lists {
		for _, setting := range list {
			key, value, _ := strings.Cut(setting, "=")
			words = append(words, "'"+key+"'='"+strings.ReplaceAll(value, "'", `'\''`)+"'")
		}
	}
	return "GIT_CONFIG_PARAMETERS=" + strings.Join(words, " ")
}

// with returns a copy of env with added lines; later lines win.
func with(env []string, more ...string) []string {
	return append(env[:len(env):len(env)], more...)
}

// Environ returns the environment of a program that works in the worktree dir and may run git there. It is scrubbed
// and unattended, stops git's search at dir, has an identity for commits, and marks the program's commits in the
// reflog (see [Git.WorkerCommits]).
func (g *Git) Environ(ctx context.Context, dir string) []string {
	env := with(g.env.child, g.ceiling(dir))
	return append(env, g.Identity(ctx, dir, false)...)
}

// ceiling returns the GIT_CEILING_DIRECTORIES that stop git's search for a repository at dir.
func (g *Git) ceiling(dir string) string {
	up := filepath.Dir(filepath.Clean(dir))
	if before := proc.Getenv(g.env.raw, "GIT_CEILING_DIRECTORIES"); before != "" {
		up += string(os.PathListSeparator) + before
	}
	return "GIT_CEILING_DIRECTORIES=" + up
}

// findGit looks for git in the PATH of environ, which may differ from this process's. If it finds none, it returns
// "git", and the first command fails.
func findGit(environ []string) string {
	if path, err := proc.LookPath("git", "", environ); err == nil {
		return path
	}
	return "git"
}

// atoi returns the number in s, or 0.
func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// ConfigList returns the user's config for the repository with this common directory; "" is outside of a repository.
// Later entries override earlier ones. It includes `git -c`.
func (g *Git) ConfigList(ctx context.Context, common string) ([]config.Entry, error) {
	if common == "" {
		// An invalid git directory prevents git from searching for one.
		common = os.DevNull
	}
	c := InRepo(common, "config", "--list", "-z", "--show-origin", "--show-scope")
	if common == os.DevNull {
		c.Dir = "/"
	}
	// Without git-tilth's own settings, and with keys, which are refused by name.
	c.env = g.env.asked
	list, err := g.List(ctx, c)
	return parseConfig(list), err
}

// parseConfig reads triples of scope, origin and "key\nvalue".
func parseConfig(f []string) []config.Entry {
	var entries []config.Entry
	for ; len(f) >= 3; f = f[3:] {
		key, value, has := strings.Cut(f[2], "\n")
		if !has {
			value = "true"
		}
		entries = append(entries, config.Entry{Key: key, Value: value, Origin: f[1], Scope: f[0]})
	}
	return entries
}

// settings are a repository's config as first read by this process, and values derived from it.
type settings struct {
	entries       []config.Entry
	identity      []string // identity variables for commits; none if the user has an identity
	excludes      string   // the user's global ignore file
	attributes    string   // the user's global attributes file
	hooksPath     string   // "" for the default
	hooksRel      string   // the setting, if it is a path relative to each checkout
	lfs           string   // directory of Git LFS objects
	promisor      string   // remote of a partial clone, or ""
	global, local string   // the whole config, in git's file format
}

// fallbackName and fallbackEmail are the identity if the user has none.
const (
	fallbackName  = "git-tilth"
	fallbackEmail = "git-tilth@localhost"
)

// settingsOf returns the settings of a worktree.
func (g *Git) settingsOf(ctx context.Context, wt Worktree) (*settings, error) {
	return g.settingsAt(ctx, cmp.Or(wt.Path, wt.Common), g.InEntry(wt))
}

// RepoSettings returns the configuration of a repository, and the user's global attributes.
func (g *Git) RepoSettings(ctx context.Context, common string) (all []config.Entry, attributes []byte, err error) {
	s, err := g.settingsAt(ctx, common, InRepo(common))
	if err != nil {
		return nil, nil, err
	}
	attributes, _ = readFile(s.attributes) // as in git, an unreadable file is ignored
	return s.entries, attributes, nil
}

// settingsAt reads the settings for dir once with a command; the whole run uses them. If git finds them from a
// directory that a worker may have changed, nothing else uses them.
func (g *Git) settingsAt(ctx context.Context, dir string, c Command) (*settings, error) {
	of := dir + "\x00" + c.Dir
	s, known := g.known.settings.get(of)
	if known {
		return s, nil
	}
	c.Args = append(c.Args, "config", "--list", "-z", "--includes", "--show-origin", "--show-scope")
	c.env = g.env.plain
	list, err := g.List(ctx, c)
	if err != nil {
		return nil, err
	}
	entries := parseConfig(list)
	values := map[string]string{}
	s = &settings{}
	var global, local, version strings.Builder
	for _, e := range entries {
		values[e.Key] = e.Value
		name := e.Key[strings.LastIndexByte(e.Key, '.')+1:]
		switch {
		case e.Scope == "command", strings.HasPrefix(e.Key, "include.") || strings.HasPrefix(e.Key, "includeif."),
			slices.Contains(placeSettings, e.Key):
		case e.Scope == "system" || e.Scope == "global":
			WriteSetting(&global, e.Key, e.Value)
		case e.Key == "core.repositoryformatversion":
			WriteSetting(&version, e.Key, e.Value)
		default:
			WriteSetting(&local, e.Key, e.Value)
		}
		if strings.HasPrefix(e.Key, "remote.") && name == "promisor" && e.Value == "true" {
			s.promisor = strings.TrimSuffix(strings.TrimPrefix(e.Key, "remote."), ".promisor")
		}
	}
	*s = settings{
		entries:    entries,
		promisor:   s.promisor,
		identity:   g.missingIdentity(values),
		excludes:   g.userPath(dir, values["core.excludesfile"]),
		attributes: g.userPath(dir, values["core.attributesfile"]),
		hooksPath:  g.userPath(dir, values["core.hookspath"]),
		hooksRel:   values["core.hookspath"],
		global:     global.String(),
		local:      version.String() + local.String() + "[core]\n\tbare = false\n",
	}
	if filepath.IsAbs(s.hooksRel) || strings.HasPrefix(s.hooksRel, "~") {
		s.hooksRel = ""
	}
	if _, set := values["core.excludesfile"]; !set {
		s.excludes = g.defaultFile("ignore")
	}
	if _, set := values["core.attributesfile"]; !set {
		s.attributes = g.defaultFile("attributes")
	}
	// Skipped for a directory that will become a worktree.
	if gitDir, err := gitDirAt(dir); err == nil {
		common, _ := commonDir(gitDir)
		s.lfs = relativeTo(common, cmp.Or(values["lfs.storage"], "lfs"))
		g.known.settings.set(of, s)
	}
	return s, nil
}

// placeSettings depend on a repository's location and are not copied to another git directory.
var placeSettings = []string{"core.bare", "core.worktree", "extensions.worktreeconfig", "extensions.refstorage",
	"extensions.relativeworktrees", "lfs.storage"}

// WriteSetting appends one key to a config file, in a separate section.
func WriteSetting(b io.Writer, key, value string) {
	section, name, _ := strings.Cut(key, ".")
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		section, name = section+` "`+escape(name[:i])+`"`, name[i+1:]
	}
	fmt.Fprintf(b, "[%s]\n\t%s = %s\n", section, name, Quote(value))
}

// Quote quotes a value as in git's config files.
func Quote(value string) string { return `"` + escape(value) + `"` }

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace

// missingIdentity returns variables that give git an identity, so that git neither refuses to commit nor invents one
// from the host's name.
func (g *Git) missingIdentity(values map[string]string) []string {
	var vars []string
	for _, role := range []string{"author", "committer"} {
		prefix := "GIT_" + strings.ToUpper(role)
		name := cmp.Or(proc.Getenv(g.env.raw, prefix+"_NAME"), values[role+".name"], values["user.name"])
		email := cmp.Or(proc.Getenv(g.env.raw, prefix+"_EMAIL"), values[role+".email"], values["user.email"],
			proc.Getenv(g.env.raw, "EMAIL"))
		if name == "" || email == "" {
			vars = append(vars, prefix+"_NAME="+fallbackName, prefix+"_EMAIL="+fallbackEmail)
			continue
		}
		// Git takes an empty variable as the identity and refuses it.
		if slices.Contains(g.env.raw, prefix+"_NAME=") || slices.Contains(g.env.raw, prefix+"_EMAIL=") {
			vars = append(vars, prefix+"_NAME="+name, prefix+"_EMAIL="+email)
		}
	}
	return vars
}

// userPath expands a path in the config as git does, except for ~user.
func (g *Git) userPath(dir, p string) string {
	switch {
	case p == "" || filepath.IsAbs(p):
		return p
	case p == "~" || strings.HasPrefix(p, "~/"):
		return filepath.Join(proc.Getenv(g.env.raw, "HOME"), p[1:])
	}
	return filepath.Join(dir, p)
}

// defaultFile returns the default path of the user's ignore rules or attributes.
func (g *Git) defaultFile(name string) string {
	home := filepath.Join(proc.Getenv(g.env.raw, "HOME"), ".config")
	return filepath.Join(cmp.Or(proc.Getenv(g.env.raw, "XDG_CONFIG_HOME"), home), "git", name)
}

// noDialog removes the variables through which a pinentry could open a dialog.
var noDialog = []string{"GPG_TTY=", "DISPLAY=", "WAYLAND_DISPLAY="}

var nobody = []string{
	"GIT_AUTHOR_NAME=" + fallbackName, "GIT_AUTHOR_EMAIL=" + fallbackEmail,
	"GIT_COMMITTER_NAME=" + fallbackName, "GIT_COMMITTER_EMAIL=" + fallbackEmail,
}

// Identity returns the variables of a command that makes commits in dir and signs them. Without a git identity it
// names git-tilth. With dir "" the committer is anonymous, for commits that never get onto a branch of the user.
func (g *Git) Identity(ctx context.Context, dir string, sign bool) (vars []string) {
	if sign {
		vars = append(slices.Clone(noDialog), proc.AgentVar+"="+proc.Getenv(g.env.raw, proc.AgentVar))
	}
	if dir == "" {
		return append(vars, nobody...)
	}
	if g.dry {
		return vars
	}
	s, err := g.settingsAt(ctx, dir, Command{Dir: dir, Vars: []string{g.ceiling(dir)}})
	if err != nil {
		return vars
	}
	return append(vars, s.identity...)
}
