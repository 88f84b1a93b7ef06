package sandbox

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// spaces is the holder of this process: a child that makes the namespaces for boxes, each once, and starts commands in
// them. These are this process's children (CLONE_PARENT).
var spaces holder

type holder struct {
	sync.Mutex
	conn  *os.File
	pid   int           // the holder's
	ended chan struct{} // closed when it was waited for
	views [][2]string   // operations and number of each mount namespace, the last used at the end
	made  int
	has   []string // the kinds of namespaces that work
	err   error    // the reason if there is none
}

// maxViews is how many mount namespaces are kept. A run takes turns with a few.
const maxViews = 8

// Spaces returns the namespaces that work here, or the reason why there are none.
func Spaces() (has []string, err error) {
	spaces.Lock()
	defer spaces.Unlock()
	spaces.open()
	return spaces.has, spaces.err
}

// Holder returns the process that makes the namespaces, 0 for none.
func Holder() int {
	spaces.Lock()
	defer spaces.Unlock()
	return spaces.pid
}

// Close ends and reaps the holder, and with it every process in its pid namespaces.
func Close() {
	spaces.Lock()
	defer spaces.Unlock()
	if spaces.conn == nil {
		return
	}
	spaces.conn.Close()
	spaces.conn, spaces.err = nil, errors.New("the holder of namespaces was ended")
	select {
	case <-spaces.ended:
	case <-time.After(patience):
	}
}

// open starts the holder, as root without a user namespace where that works.
func (h *holder) open() {
	if h.conn != nil || h.err != nil {
		return
	}
	if Without == "namespaces" {
		h.err = errors.New("they are refused")
		return
	}
	if os.Geteuid() == 0 {
		if h.err = h.begin(&syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Setpgid: true}); h.err == nil {
			return
		}
	}
	id := func(n int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: n, HostID: n, Size: 1}}
	}
	// These capabilities allow mounting, entering a mount namespace, and overlayfs's access to its working
	// directory, which has no permissions.
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS, Setpgid: true,
		UidMappings: id(os.Geteuid()), GidMappings: id(os.Getegid()), AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN,
			unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_CHOWN, unix.CAP_FSETID,
			unix.CAP_SYS_CHROOT}}
	h.err = h.begin(attr)
}

func (h *holder) begin(attr *syscall.SysProcAttr) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours, its := os.NewFile(uintptr(pair[0]), "holder"), os.NewFile(uintptr(pair[1]), "holder")
	defer its.Close()
	cmd := &exec.Cmd{Path: selfExe, Args: []string{Name, Name, holds}, Dir: "/", Env: []string{},
		ExtraFiles: []*os.File{its}, SysProcAttr: attr}
	if err := cmd.Start(); err != nil {
		ours.Close()
		return err
	}
	said, _, err := receive(int(ours.Fd()))
	if err == nil && len(said) < 2 {
		err = errors.New(strings.Join(said, ""))
	}
	if err != nil {
		ours.Close()
		_ = cmd.Wait()
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	h.conn, h.pid, h.ended = ours, cmd.Process.Pid, ended
	h.has = strings.Fields(said[1])
	return nil
}

// start starts a command in the namespaces for ops. The error is errSpace without namespaces.
func (h *holder) start(ops []string, flags, layers string, cmd *exec.Cmd, extra ...*os.File) (*Tree, error) {
	h.Lock()
	defer h.Unlock()
	if h.open(); h.err != nil {
		return nil, errSpace
	}
	files, done, err := streams(cmd)
	defer done()
	if err != nil {
		return nil, err
	}
	view, err := h.view(ops)
	if err != nil {
		return nil, err
	}
	request := slices.Concat([]string{"start", view, flags, layers, cmd.Dir, cmd.Path, strconv.Itoa(len(cmd.Args))},
		cmd.Args, cmd.Environ())
	said, err := h.ask(request, append(files, extra...)...)
	if err != nil {
		return nil, err
	}
	pid, _ := strconv.Atoi(said[1])
	init, _ := strconv.Atoi(said[2])
	tree := newTree(init)
	if said[0] != "" {
		n, _ := strconv.Atoi(said[0])
		_ = tree.End(nil)
		return nil, &fs.PathError{Op: "fork/exec", Path: cmd.Dir, Err: syscall.Errno(n)}
	}
	cmd.Process, err = os.FindProcess(pid)
	return tree, err
}

// view returns the number of a mount namespace, and makes it if necessary.
func (h *holder) view(ops []string) (number string, err error) {
	key := strings.Join(ops, "\x00")
	i := slices.IndexFunc(h.views, func(v [2]string) bool { return v[0] == key })
	if i >= 0 {
		v := h.views[i]
		h.views = append(slices.Delete(h.views, i, i+1), v)
		return v[1], nil
	}
	if len(h.views) == maxViews {
		if _, err := h.ask([]string{"drop", h.views[0][1]}); err != nil {
			return "", err
		}
		h.views = h.views[1:]
	}
	h.made++
	number = strconv.Itoa(h.made)
	said, err := h.ask(append([]string{"view", number}, ops...))
	if err != nil || said[0] != "" {
		return "", errSpace
	}
	h.views = append(h.views, [2]string{key, number})
	return number, nil
}

// ask sends a request and returns the answer.
func (h *holder) ask(request []string, files ...*os.File) ([]string, error) {
	var fds []int
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	err := send(int(h.conn.Fd()), request, fds)
	if err == nil {
		var said []string
		if said, _, err = receive(int(h.conn.Fd())); err == nil {
			return said, nil
		}
	}
	h.conn.Close()
	h.conn, h.err = nil, fmt.Errorf("the holder of namespaces is gone: %w", err)
	return nil, errSpace
}

// streams are the standard streams of a command.
func streams(cmd *exec.Cmd) (files []*os.File, done func(), err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	done = func() { null.Close() }
	for _, s := range []any{cmd.Stdin, cmd.Stdout, cmd.Stderr} {
		f, ok := s.(*os.File)
		switch {
		case s == nil:
			f = null
		case !ok:
			err = errors.New("a command in the sandbox takes files for its streams")
		}
		files = append(files, f)
	}
	return files, done, err
}

// errSpace says that there are no namespaces for a command.
var errSpace = errors.New("the sandbox has no namespaces")

// The kinds of operations in a mount namespace. An operation is a kind, a path and further arguments, sorted by path.
const (
	opCover  = "cover"  // an empty directory
	opBlank  = "blank"  // an empty file
	opShow   = "show"   // the path as outside, read-only
	opWrite  = "write"  // the same, to write
	opLayer  = "layer"  // the same, written to a layer
	opCopy   = "copy"   // a copy of a file, which gets the writes
	opTouch  = "touch"  // the same, to read, where the times may be changed
	opFix    = "fix"    // the same, to read, in a directory that may be written
	opLink   = "link"   // a symbolic link
	opShared = "shared" // processes are seen as outside
)

// mounts returns the operations that make the box's mount namespace. A replaced file changes them.
func (b *Box) mounts() []string {
	type op struct{ kind, path, arg string }
	var ops []op
	at := map[string]bool{}
	own := b.links.reals(b.Write)
	placed := false
	add := func(kind, path, arg string) {
		if at[path] || placed && b.place.covers(path) && (kind != opWrite || !slices.Contains(own, path)) {
			return
		}
		at[path] = true
		ops = append(ops, op{kind, path, arg})
	}
	b.placing(add)
	placed = true
	for _, other := range b.Instead {
		if fi, err := os.Lstat(other.Path); err == nil && fi.Mode().IsRegular() {
			add(opCopy, b.links.real(other.Path), other.In)
		}
	}
	for _, dir := range own {
		// The .git file of a worktree decides where git finds its configuration.
		if fi, err := os.Lstat(filepath.Join(dir, ".git")); err == nil && fi.Mode().IsRegular() {
			add(opFix, filepath.Join(dir, ".git"), look(filepath.Join(dir, ".git")))
		}
	}
	for _, path := range b.outermost() {
		if kind, in := b.layer(path); in != "" {
			add(kind, path, in)
		} else if path != "/dev/shm" && there(path) {
			add(opWrite, path, look(path))
		}
	}
	for _, s := range b.State { // also in a path of Through
		if path := b.links.real(s.Path); there(path) {
			if kind, in := b.layer(path); in != "" {
				add(kind, path, in)
			}
		}
	}
	for _, some := range []struct {
		kind  string
		paths []string
	}{{opWrite, b.Through}, {opTouch, b.Touch}, {opShow, b.readable()}} {
		for _, path := range b.links.reals(some.paths) {
			if there(path) {
				add(some.kind, path, look(path))
			}
		}
	}
	for _, path := range b.links.reals(b.Hide) {
		if fi, err := os.Lstat(path); err == nil && fi.IsDir() {
			add(opCover, path, "")
		} else if err == nil && fi.Mode().IsRegular() {
			add(opBlank, path, "")
		}
	}
	for _, path := range b.trails {
		for _, link := range b.links.trail(path) {
			to, _ := os.Readlink(link)
			add(opLink, link, to)
		}
	}
	slices.SortFunc(ops, func(a, b op) int { return strings.Compare(a.path+"/", b.path+"/") })
	var out, within []string
	for _, o := range ops {
		// A path that is shown like the directory around it needs no operation.
		for len(within) > 0 && !below(o.path, within[len(within)-1]) {
			within = within[:len(within)-2]
		}
		around := opShow
		if len(within) > 0 {
			around = within[len(within)-2]
		} else if below(o.path, "/dev/shm") { // it is empty there
			around = opCover
		}
		if o.kind == around || (around == opWrite || around == opLayer) && (o.kind == opShow || o.kind == opTouch) ||
			around == opTouch && o.kind == opShow || o.kind == opLink && around != opCover ||
			(o.kind == opCover || o.kind == opBlank) && around == opCover {
			continue
		}
		if o.kind != opLink && o.kind != opBlank {
			within = append(within, o.kind, o.path)
		}
		out = append(out, o.kind, o.path, o.arg)
	}
	if Without == "pid" {
		out = append(out, opShared, "", "")
	}
	return out
}

// layer returns the directory that receives writes to a path, "" for the path itself, and the kind of layer. A file
// among caches is a lock or an index of the directory next to it.
func (b *Box) layer(path string) (kind, in string) {
	fi, err := os.Lstat(path)
	if err != nil || slices.Contains(b.links.reals(b.Write), path) {
		return "", ""
	}
	for _, s := range b.State {
		if s.In != "" && b.links.real(s.Path) == path && fi.IsDir() {
			return opLayer, s.In
		} else if s.In != "" && b.links.real(s.Path) == path {
			return opCopy, s.In
		}
	}
	if b.Layers == "" || !fi.IsDir() || !slices.Contains(b.links.reals(b.Caches), path) {
		return "", ""
	}
	name := fmt.Sprintf("%x", sha256.Sum256([]byte(path)))[:16]
	if in = filepath.Join(b.Layers, name); b.Above != "" {
		in = filepath.Join(b.Above, name) + "\n" + in
	}
	return opLayer, in
}

// trail returns the symbolic links on the way to a path's target.
func (l links) trail(path string) (out []string) {
	seen := map[string]bool{}
	rest := strings.Split(filepath.Clean(path), "/")
	for at, followed := "/", 0; len(rest) > 0 && followed < 40; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		to := l.read(next)
		if to == "" {
			at = next
			continue
		}
		if !seen[next] {
			seen[next] = true
			out = append(out, next)
		}
		followed++
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(filepath.Clean(to), "/"), rest...)
	}
	return out
}

// Messages are a length, then strings that end with a NUL, which neither a path nor an argument holds.

func send(fd int, words []string, fds []int) error {
	body := strings.Join(words, "\x00")
	head := fmt.Appendf(nil, "%08x%08x", len(body), len(fds))
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	if err := unix.Sendmsg(fd, head, oob, nil, unix.MSG_NOSIGNAL); err != nil {
		return err
	}
	for rest := []byte(body); len(rest) > 0; {
		n, err := unix.SendmsgN(fd, rest, nil, nil, unix.MSG_NOSIGNAL)
		if err != nil && err != unix.EINTR {
			return err
		}
		rest = rest[max(n, 0):]
	}
	return nil
}

func receive(fd int) (words []string, fds []int, err error) {
	head, oob := make([]byte, 16), make([]byte, unix.CmsgSpace(16*4))
	n, oobn := 0, 0
	for {
		n, oobn, _, _, err = unix.Recvmsg(fd, head, oob, unix.MSG_CMSG_CLOEXEC|unix.MSG_WAITALL)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil || n != len(head) {
		return nil, nil, cmpErr(err)
	}
	var size, files int
	if _, err := fmt.Sscanf(string(head), "%08x%08x", &size, &files); err != nil {
		return nil, nil, err
	}
	if files > 0 {
		messages, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil || len(messages) != 1 {
			return nil, nil, cmpErr(err)
		}
		if fds, err = unix.ParseUnixRights(&messages[0]); err != nil {
			return nil, nil, err
		}
	}
	body := make([]byte, size)
	for rest := body; len(rest) > 0; {
		n, err := unix.Read(fd, rest)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return nil, nil, cmpErr(err)
		}
		rest = rest[n:]
	}
	return strings.Split(string(body), "\x00"), fds, nil
}

func cmpErr(err error) error {
	if err == nil {
		return unix.EPIPE
	}
	return err
}
