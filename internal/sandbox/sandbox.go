// Package sandbox runs commands in a sandbox that needs no root.
//
// A [Box] lists the paths that processes inside may change and read. [Box.Start] starts a command in it. The kernel
// enforces it: Landlock on Linux, sandbox-exec on macOS. [Probe] reports the system's abilities.
//
// On Linux it works like this:
//
//   - The harness opens the readable and writable paths and adds them to a Landlock ruleset. The child needs only the
//     ruleset's descriptor, so it reads nothing that a worker could have changed.
//   - The child drops all capabilities, sets no_new_privs, enters the ruleset and executes the command. It is a fork
//     of the holder (below) or, without namespaces, this program under the name [Name], with an init function that
//     does this before the rest is initialised. No thread of the harness is ever inside, because a command could trace
//     and signal a thread in its own sandbox.
//   - Landlock can allow, and cannot deny below an allowed path. For a hidden path, the other entries of each directory
//     above it are therefore allowed one by one. Such a directory cannot be listed, because the right to list would
//     reach the hidden path too. The ruleset is made again when such a directory changed.
//   - Landlock denies tracing, and so memory, environment and descriptors of all processes outside. From ABI 6 it
//     denies signals and abstract sockets too.
//   - Landlock does not cover the system call that sets limits of other processes; seccomp denies it.
//   - seccomp cuts off the network: a socket of another family than Unix or netlink cannot be made.
//   - Namespaces, if they can be made, cover the rest (sockets with a path, modes and times, shared memory, terminals,
//     arguments of processes). A holder, which is this program again, makes one set for each Box: everything read-only
//     except writable paths. An empty directory hides each closed one and shows only its open paths. The holder
//     starts commands there as children of this process.
//   - Without namespaces the user's terminals are hidden with the other devices, also those that a command would make.
//
// A child that cannot enter its sandbox does not start; the error of [Box.Start] has the reason.
//
// [System.Lacks] lists the gaps on a kernel. docs/security.md has a table of them.
package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/session"
)

// Name is the name of the process that enters a sandbox, until it executes its command.
const Name = "git-tilth-sandbox"

// Without is for tests: "namespaces" or "pid" are not used.
var Without string

// Box is the policy of a sandbox. A nil Box is no sandbox.
type Box struct {
	Write []string // paths that may be changed, directories with their contents
	// Caches may be changed too. If Layers names a directory and the system supports it, writes go into a layer there
	// and the caches stay unchanged.
	Caches []string
	Layers string
	// Above names a directory of layers above the others, which get the writes.
	Above string
	// State may change and is restored if the system supports that: writes to a directory go to its layer, writes to a
	// file to a copy. Paths in Through really change, except a State below one of them.
	State   []Layer
	Through []string
	// Instead shows another file at a path, where the system can.
	Instead []Layer
	Read    []string  // paths in hidden directories that may be read
	Open    []Opening // readable paths for all commands of a run, with the reason
	Hide    []string  // paths that may not be read, unless they are in Write, Read or Open
	// Sockets are the directories and sockets of helpers that serve any process, for macOS.
	Sockets []string
	// Temp is the directory for temporary files, which TMPDIR names. It may be changed.
	Temp      string
	NoNetwork bool
	// MaxProcesses and MaxMemory limit the threads and the bytes of a command with all that it starts. 0 is no limit of
	// threads, and 90 % of the machine's memory.
	MaxProcesses, MaxMemory int64
	// MinFree are the bytes that a command leaves on its disks.
	MinFree int64
	// Touch may be read, and its times changed: git does that with an object that it would write and has.
	Touch []string
	// Terminals lets commands open terminals, also if these can be the user's.
	Terminals bool
	home      string
	secret    []string // hidden paths that no setting opens
	place     *Place
	over      string   // the layer of Over
	links     links    // cached for the start of one command; nil: resolved each time
	trails    []string // paths with symbolic links to open paths
}

// Layer is a path with the directory that receives its writes.
type Layer struct{ Path, In string }

// Written returns the directory of a layer with the written files.
func Written(layer string) string { return filepath.Join(layer, "upper") }

// Accepted is the prefix of directories in a Box's Layers that are above the layers there, the last one topmost.
const Accepted = "accepted-"

// System describes the abilities of a system's sandbox.
type System struct {
	Kind  string   // "Landlock ABI 7", "sandbox-exec", "" for none
	Lacks []string // gaps of this kernel, in words
	// Short reports that the sandbox does not stop signals or truncation of files. Sockets of helpers do not count.
	Short bool
	// Err is why there is none.
	Err error
}

// With returns a Box in which these paths are also writable.
func (b *Box) With(write ...string) *Box {
	return b.but(func(out *Box) { out.Write = append(slices.Clip(out.Write), write...) })
}

// Reading returns a Box in which these paths are also readable.
func (b *Box) Reading(read ...string) *Box {
	return b.but(func(out *Box) { out.Read = append(slices.Clip(out.Read), read...) })
}

// Touching returns a Box in which these paths are readable and their times can be changed.
func (b *Box) Touching(touch ...string) *Box {
	return b.but(func(out *Box) { out.Touch = append(slices.Clip(out.Touch), touch...) })
}

// Showing returns a Box with another file at a path, if the system supports that.
func (b *Box) Showing(path, other string) *Box {
	return b.but(func(out *Box) { out.Instead = append(slices.Clip(out.Instead), Layer{path, other}) })
}

// Over returns a Box in which a directory is writable. If the system supports it, writes go to a layer and the
// directory stays unchanged; [Layered] reports that.
func (b *Box) Over(dir, layer string) *Box {
	return b.but(func(out *Box) {
		out.State, out.over = append(slices.Clip(out.State), Layer{dir, layer}), layer
	})
}

// Of returns a Box with the cache layers for dir, if dir is in a session's directory: a worktree or a judged checkout.
// Commands in it can follow the session's link to the repository.
func (b *Box) Of(dir string) *Box {
	caches, name, ok := session.CachesOf(dir)
	if !ok {
		return b
	}
	return b.but(func(out *Box) {
		out.Layers = filepath.Join(caches, name)
		if link := session.RepoLink(dir); there(link) {
			out.Read, out.trails = append(slices.Clip(out.Read), link), append(slices.Clip(out.trails), link)
		}
	})
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// In returns a Box with a directory for temporary files.
func (b *Box) In(temp string) *Box { return b.but(func(out *Box) { out.Temp = temp }) }

// but returns a copy of a Box with a change.
func (b *Box) but(change func(*Box)) *Box {
	if b == nil {
		return nil
	}
	out := *b
	change(&out)
	return &out
}

// Environ returns env for the sandbox: with the temporary directory, without variables that lead to helpers outside.
func (b *Box) Environ(env []string) []string {
	if b == nil {
		return env
	}
	out := slices.DeleteFunc(slices.Clone(env), func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		return slices.Contains(helperVars, name) || b.Temp != "" && slices.Contains(tempVars, name)
	})
	if b.Temp != "" {
		for _, name := range tempVars {
			out = append(out, name+"="+b.Temp)
		}
	}
	return out
}

// tempVars name the directory of a program's temporary files. Some programs, such as pnpm for its locks, read only the
// second variable and use /tmp without it.
var tempVars = []string{"TMPDIR", "XDG_RUNTIME_DIR"}

// helperVars name sockets of helpers.
var helperVars = []string{"DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "TMUX", "STY", "SSH_AGENT_PID", "GPG_AGENT_INFO",
	"SWAYSOCK", "VSCODE_IPC_HOOK_CLI"}

// writable returns the paths that may be changed, the directory for temporary files with them.
func (b *Box) writable() []string {
	out := slices.Concat(b.Write, b.Caches, b.Through)
	for _, s := range b.State {
		out = append(out, s.Path)
	}
	if b.Temp != "" {
		out = append(out, b.Temp)
	}
	return append(out, "/dev/shm")
}

// Closes reports whether a path exists and cannot be read in the box. It returns false for the closed directories
// themselves.
func (b *Box) Closes(path string) bool {
	if b == nil || !filepath.IsAbs(path) || !there(path) {
		return false
	}
	path = real(filepath.Clean(path))
	deepest := func(dirs []string) (n int) {
		for _, dir := range links(nil).reals(dirs) {
			if below(path, dir) {
				n = max(n, len(dir))
			}
		}
		return n
	}
	hidden := deepest(b.Hide)
	return hidden > 0 && hidden < len(path) && hidden > deepest(append(b.writable(), b.readable()...))
}

// Secret reports whether a path exists and no setting opens it: it has credentials, or the user closed it.
func (b *Box) Secret(path string) bool {
	return b != nil && there(path) && slices.ContainsFunc(links(nil).reals(b.secret), func(dir string) bool {
		return below(real(filepath.Clean(path)), dir)
	})
}

// readable returns the readable paths in hidden directories.
func (b *Box) readable() []string {
	out := slices.Concat(b.Read, b.Touch)
	for _, o := range b.Open {
		out = append(out, o.Path)
	}
	return out
}

// outermost returns the writable paths with links resolved, without those inside another writable path, because a
// process could replace them by a link to a protected path. Hidden paths in a directory cannot be replaced.
func (b *Box) outermost() (tops []string) {
	hidden := b.links.reals(b.Hide)
	paths := slices.DeleteFunc(b.writable(), func(path string) bool { return !filepath.IsAbs(path) })
	slices.SortStableFunc(paths, func(a, b string) int { return len(filepath.Clean(a)) - len(filepath.Clean(b)) })
	for _, path := range paths {
		path = filepath.Clean(path)
		inside := false
		for dir := filepath.Dir(path); !inside; dir = filepath.Dir(dir) {
			at := b.links.real(dir)
			unfollowed := filepath.Join(at, strings.TrimPrefix(path, dir))
			inside = slices.ContainsFunc(tops, func(top string) bool {
				return below(at, top) && !slices.ContainsFunc(hidden, func(h string) bool {
					return below(h, top) && below(unfollowed, h)
				})
			})
			if dir == filepath.Dir(dir) {
				break
			}
		}
		if !inside {
			tops = append(tops, b.links.real(path))
		}
	}
	return tops
}

// links caches resolved symbolic links. A box names about a hundred paths, most of them in the same few directories,
// and resolves each several times for one command.
type links map[string]string

// resolving returns a Box that resolves each directory only once.
func (b *Box) resolving() *Box { return b.but(func(out *Box) { out.links = links{} }) }

// real resolves links. Of a missing path it resolves the existing part and cleans the rest.
func real(path string) string { return links{}.real(path) }

func (l links) real(path string) string {
	path = filepath.Clean(path)
	at, known := l[path]
	if known {
		return at
	}
	at = path
	if dir := filepath.Dir(path); dir != path {
		at = filepath.Join(l.real(dir), filepath.Base(path))
	}
	if readLink(at) != "" {
		if to, err := filepath.EvalSymlinks(at); err == nil {
			at = to
		}
	}
	if l != nil {
		l[path] = at
	}
	return at
}

// readLink returns the target of a symbolic link, "" for another file.
func readLink(path string) string {
	to, _ := os.Readlink(path)
	return to
}

func (l links) reals(paths []string) []string {
	var out []string
	for _, path := range paths {
		if filepath.IsAbs(path) {
			out = append(out, l.real(path))
		}
	}
	return out
}

// below reports whether path is dir or in it.
func below(path, dir string) bool {
	rest, in := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
	return path == dir || in && strings.HasPrefix(rest, "/")
}

// around returns paths that cover top without the hidden paths in it, and the directories that it read for that. A top
// without hidden paths is returned itself.
func around(top string, hidden []string) (cover, opened []string) {
	if slices.Contains(hidden, top) {
		return nil, nil
	}
	if !slices.ContainsFunc(hidden, func(h string) bool { return below(h, top) }) {
		return []string{top}, nil
	}
	entries, _ := os.ReadDir(top)
	opened = []string{top}
	for _, e := range entries {
		if e.Type()&os.ModeSymlink != 0 {
			continue
		}
		c, o := around(filepath.Join(top, e.Name()), hidden)
		cover, opened = append(cover, c...), append(opened, o...)
	}
	return cover, opened
}
