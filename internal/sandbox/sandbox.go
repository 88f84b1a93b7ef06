// Package sandbox holds what a run starts inside a wall that needs no root.
//
// A [Box] says what the processes inside may change and read. [Box.Start] starts a command in it. The wall is the
// kernel's: Landlock on Linux, sandbox-exec on macOS. [Probe] says what the system at hand can do.
//
// How it is done on Linux:
//
//   - The harness opens what may be read and written, and adds it to a Landlock ruleset. The ruleset's descriptor is
//     all that the child needs, so that nothing a worker could have changed is looked at on the way.
//   - The child drops all capabilities, takes the way back (no_new_privs), enters the ruleset and executes the
//     command. It is a fork of the holder (below) or, where there are no namespaces, this program under the name
//     [Name], of which an init function does that before the rest is set up. No thread of the harness is ever inside:
//     a command could trace and signal one that shares its wall.
//   - Landlock can allow, and cannot deny below what it allowed. What is hidden is therefore left out: of each
//     directory above a hidden path the entries beside it are allowed one by one. Such a directory cannot be listed,
//     because the right to list would reach the hidden one too. The set is made anew when such a directory changed.
//   - A wall denies tracing, and so memory, environment and descriptors of all processes outside of it. From ABI 6 on
//     it denies signals and abstract sockets too.
//   - Limits of other processes are set by a system call that Landlock does not know; seccomp denies it.
//   - The network is cut off by seccomp: a socket of another family than Unix or netlink cannot be made.
//   - What Landlock does not look at (sockets with a path, modes and times, shared memory, terminals, arguments of
//     processes) is kept away by namespaces, where they can be made. A holder, which is this program again, makes one
//     set for each Box: all read-only but for what may be changed, with an empty directory over what is closed, in
//     which only what is open is shown. The holder starts commands there as children of this process.
//   - Without them the user's terminals are hidden with the other devices, those that a command would make too.
//
// A child that cannot enter its wall does not start: the error of [Box.Start] says why.
//
// What the wall cannot hold on a kernel is in [System.Lacks]. docs/security.md has the table of what holds what.
package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/git-tilth/git-tilth/internal/session"
)

// Name is what the process that enters a wall is called until it executes its command.
const Name = "git-tilth-sandbox"

// Without is for tests: "namespaces" or "pid" are not used.
var Without string

// Box is what the processes inside may do. A nil Box is no wall.
type Box struct {
	Write []string // what may be changed, directories with all that is in them
	// Caches may be changed too. Where Layers names a directory and the system can, what is written to them comes into
	// a layer there, and they stay as they are.
	Caches []string
	Layers string
	// Above names a directory of layers that are written to in place of those, and lie above them.
	Above string
	// State may be changed, and is as it was afterwards where the system can: what is written to a directory comes into
	// the layer that is named, to a file into that copy of it. What Through names in it is changed itself, but for a
	// State in that.
	State   []Layer
	Through []string
	// Instead shows another file at a path, where the system can.
	Instead []Layer
	Read    []string  // what may be read although it lies in a hidden directory
	Open    []Opening // the same for all that a run starts, with the reason
	Hide    []string  // what may not be read, where it is not in Write, Read or Open
	// Sockets are the directories and sockets of helpers that do work for whoever asks.
	Sockets []string
	// Temp is the directory for temporary files, which TMPDIR names. It may be changed.
	Temp      string
	NoNetwork bool
	// Touch may be read, and its times changed: git does that with an object that it would write and has.
	Touch []string
	// Terminals lets commands have a terminal also where only the user's can be opened: they are open then.
	Terminals bool
	// SharePIDs lets processes be seen as they are outside, for a program that locks by a process's number.
	SharePIDs bool
	home      string
	over      string   // the layer of Over
	links     links    // as they are while one command is started; nil: to be looked at each time
	once      *once    // what it came to for its first command; nil: it is looked at for each
	trails    []string // paths that may lead to what is open by symbolic links
}

// once is what a Box comes to: a ruleset, and what its namespaces are made of.
type once struct {
	sync.Mutex
	rules *os.File
	ops   []string
}

// Layer is a path, and where what is written to it goes.
type Layer struct{ Path, In string }

// Written is where a layer of a directory has what was written.
func Written(layer string) string { return filepath.Join(layer, "upper") }

// Accepted begins the names of directories in a Box's Layers that lie above the layers there, the last one topmost.
const Accepted = "accepted-"

// System is what a system's sandbox can do.
type System struct {
	Kind  string   // "Landlock ABI 7", "sandbox-exec", "" for none
	Lacks []string // what this kernel cannot hold, in words
	// Short says that signals or truncated files get past it. Helpers' sockets are nobody's promise.
	Short bool
	// Err is why there is none.
	Err error
}

// With returns a Box in which these may be changed too.
func (b *Box) With(write ...string) *Box {
	return b.but(func(out *Box) { out.Write = append(slices.Clip(out.Write), write...) })
}

// Reading returns a Box in which these may be read too.
func (b *Box) Reading(read ...string) *Box {
	return b.but(func(out *Box) { out.Read = append(slices.Clip(out.Read), read...) })
}

// Touching returns a Box in which these may be read, and their times changed.
func (b *Box) Touching(touch ...string) *Box {
	return b.but(func(out *Box) { out.Touch = append(slices.Clip(out.Touch), touch...) })
}

// Showing returns a Box in which another file is at a path, where the system can have it so.
func (b *Box) Showing(path, other string) *Box {
	return b.but(func(out *Box) { out.Instead = append(slices.Clip(out.Instead), Layer{path, other}) })
}

// Over returns a Box in which a directory may be changed, and is as it was afterwards where the system can: what is
// written comes into a layer. [Layered] says whether it did.
func (b *Box) Over(dir, layer string) *Box {
	return b.but(func(out *Box) {
		out.State, out.over = append(slices.Clip(out.State), Layer{dir, layer}), layer
	})
}

// Of returns a Box with layers over the caches that are for what runs in dir, where that lies in the directory of a
// session: a worktree, or where changes are judged.
func (b *Box) Of(dir string) *Box {
	layers := filepath.Base(dir)
	for of := filepath.Dir(dir); of != filepath.Dir(of); of = filepath.Dir(of) {
		if session.ValidID(strings.TrimPrefix(filepath.Base(of), session.DraftPrefix)) {
			return b.but(func(out *Box) { out.Layers = filepath.Join(of, session.CachesDir, layers) })
		}
		layers = filepath.Base(of) + "-" + layers
	}
	return b
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Once returns a Box of which it is looked once at what it names, for commands that follow each other at once.
func (b *Box) Once() *Box { return b.but(func(out *Box) { out.once = new(once) }) }

// In returns a Box with a directory for temporary files.
func (b *Box) In(temp string) *Box { return b.but(func(out *Box) { out.Temp = temp }) }

// but is a copy of a Box with a change.
func (b *Box) but(change func(*Box)) *Box {
	if b == nil {
		return nil
	}
	out := *b
	out.once = nil
	change(&out)
	return &out
}

// Environ returns env as it is inside: with the directory for temporary files, without the ways to helpers outside.
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

// tempVars name where a program may write what it needs while it runs. Some, as pnpm for its locks, look at the second
// one alone, and take /tmp where it is not set.
var tempVars = []string{"TMPDIR", "XDG_RUNTIME_DIR"}

// helperVars name sockets of helpers.
var helperVars = []string{"DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "TMUX", "STY", "SSH_AGENT_PID", "GPG_AGENT_INFO",
	"SWAYSOCK", "VSCODE_IPC_HOOK_CLI"}

// writable are the paths that may be changed, the directory for temporary files with them.
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

// readable are the paths that may be read although they lie in a hidden directory.
func (b *Box) readable() []string {
	out := slices.Concat(b.Read, b.Touch)
	for _, o := range b.Open {
		out = append(out, o.Path)
	}
	return out
}

// outermost are the paths that may be changed, with links resolved, but for those that lie in another one: whoever may
// change that could put a link there, to what is not to be changed. What is hidden in a directory may not be replaced.
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

// links are paths with their symbolic links resolved. A box names some hundred paths, of which most lie in the same few
// directories, and asks for each several times while it starts one command.
type links map[string]string

// resolving returns a Box that looks at each directory once.
func (b *Box) resolving() *Box { return b.but(func(out *Box) { out.links = links{} }) }

// real resolves links. A path that is not there is only cleaned, together with what of it is there.
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
	if l.read(at) != "" {
		if to, err := filepath.EvalSymlinks(at); err == nil {
			at = to
		}
	}
	if l != nil {
		l[path] = at
	}
	return at
}

// read is what a symbolic link says, "" for what is none.
func (l links) read(path string) string {
	key := path + "/->"
	to, known := l[key]
	if !known {
		var buf [4096]byte
		if n, err := syscall.Readlink(path, buf[:]); err == nil {
			to = string(buf[:n])
		}
		if l != nil {
			l[key] = to
		}
	}
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

// below reports whether path is dir or lies in it.
func below(path, dir string) bool {
	rest, in := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
	return path == dir || in && strings.HasPrefix(rest, "/")
}

// around returns what covers top but for the hidden paths in it, and the directories that were looked into for that. A
// top that holds none is the answer itself.
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
