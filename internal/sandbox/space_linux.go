package sandbox

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
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

// spaces is the holder of this process: a child that creates the namespaces of boxes, each once, and starts commands
// in them. These are this process's children (CLONE_PARENT).
var spaces holder

type holder struct {
	sync.Mutex
	conn  *os.File
	ended chan struct{} // closed when it was waited for
	has   []string      // the kinds of namespaces that work
	err   error         // the reason if there is none
}

// Spaces returns the namespaces that work here, or the reason why there are none.
func Spaces() (has []string, err error) {
	spaces.Lock()
	defer spaces.Unlock()
	spaces.open()
	return spaces.has, spaces.err
}

// Close ends and reaps the holder, and with it every process in its pid namespaces.
func Close() {
	spaces.Lock()
	defer spaces.Unlock()
	if spaces.conn == nil {
		return
	}
	spaces.conn.Close()
	spaces.conn, spaces.err = nil, errors.New("the process with the namespaces was stopped")
	select {
	case <-spaces.ended:
	case <-time.After(patience):
	}
}

// open starts the holder; as root without a user namespace if possible.
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
	// These capabilities allow mounts, entering a mount namespace, and overlayfs's access to its working directory,
	// which has no permissions.
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
	h.conn, h.ended = ours, ended
	h.has = slices.DeleteFunc(strings.Fields(said[1]), func(kind string) bool { return kind == Without })
	return nil
}

// start starts a command in the namespaces for ops. The error is errSpace without namespaces.
func (h *holder) start(ops []string, flags, layers string, cmd *exec.Cmd) (*Tree, error) {
	h.Lock()
	defer h.Unlock()
	if h.open(); h.err != nil {
		return nil, errSpace
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	var files []*os.File
	for _, s := range []any{cmd.Stdin, cmd.Stdout, cmd.Stderr} {
		f, ok := s.(*os.File) // or nil
		if !ok {
			f = null
		}
		files = append(files, f)
	}
	files = append(files, cmd.ExtraFiles...)
	if attr := cmd.SysProcAttr; attr != nil && attr.UseCgroupFD {
		fd, err := unix.FcntlInt(uintptr(attr.CgroupFD), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		group := os.NewFile(uintptr(fd), "cgroup")
		defer group.Close()
		files, flags = append(files, group), "g"+flags
	}
	request := slices.Concat([]string{strconv.Itoa(len(ops))}, ops,
		[]string{flags, layers, cmd.Dir, cmd.Path, strconv.Itoa(len(cmd.Args))}, cmd.Args, cmd.Environ())
	said, err := h.ask(request, files)
	if err != nil || said[0] == noView {
		return nil, errSpace
	}
	pid, _ := strconv.Atoi(said[1])
	init, _ := strconv.Atoi(said[2])
	var tree *Tree
	if init > 0 {
		tree = &Tree{Root: init}
	}
	if said[0] != "" {
		n, _ := strconv.Atoi(said[0])
		_ = tree.End(nil)
		return nil, &fs.PathError{Op: "fork/exec", Path: cmd.Dir, Err: syscall.Errno(n)}
	}
	cmd.Process, err = os.FindProcess(pid)
	return tree, err
}

// ask sends a request and returns the answer.
func (h *holder) ask(request []string, files []*os.File) ([]string, error) {
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
	h.conn, h.err = nil, fmt.Errorf("the process with the namespaces has ended: %w", err)
	return nil, errSpace
}

// errSpace means that a command has no namespaces.
var errSpace = errors.New("the sandbox has no namespaces")

// The kinds of operations in a mount namespace. An operation is a kind, a path and further arguments, sorted by path.
const (
	opCover = "cover" // an empty directory
	opBlank = "blank" // an empty file
	opShow  = "show"  // the path as outside, read-only
	opWrite = "write" // shows a path, writable
	opLayer = "layer" // shows a path, with writes in a layer
	opCopy  = "copy"  // a copy of a file, which gets the writes
	opTouch = "touch" // shows a path read-only, except for times
	opFix   = "fix"   // shows a path read-only in a writable directory
	opLink  = "link"  // a symbolic link
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
		// A path with the same view as its directory needs no operation.
		for len(within) > 0 && !below(o.path, within[len(within)-1]) {
			within = within[:len(within)-2]
		}
		around := opShow
		if len(within) > 0 {
			around = within[len(within)-2]
		} else if below(o.path, "/dev/shm") { // the sandbox's /dev/shm is empty
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
		to := readLink(next)
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

// Messages are NUL-terminated strings, because no path or argument contains NUL. They are passed in a file, before the
// other files of the message.

func send(fd int, words []string, fds []int) error {
	memory, err := unix.MemfdCreate("message", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	body := os.NewFile(uintptr(memory), "message")
	defer body.Close()
	if _, err = body.WriteString(strings.Join(words, "\x00")); err != nil {
		return err
	}
	return unix.Sendmsg(fd, []byte{0}, unix.UnixRights(append([]int{memory}, fds...)...), nil, unix.MSG_NOSIGNAL)
}

func receive(fd int) (words []string, fds []int, err error) {
	oob := make([]byte, unix.CmsgSpace(16*4))
	n, oobn, err := 0, 0, error(unix.EINTR)
	for err == unix.EINTR {
		n, oobn, _, _, err = unix.Recvmsg(fd, make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
	}
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err != nil {
		return nil, nil, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err == nil && len(messages) == 1 {
		fds, err = unix.ParseUnixRights(&messages[0])
	}
	if err != nil || len(fds) == 0 {
		return nil, nil, errors.Join(err, errSpace)
	}
	body := os.NewFile(uintptr(fds[0]), "message")
	defer body.Close()
	data, err := io.ReadAll(io.NewSectionReader(body, 0, math.MaxInt64))
	return strings.Split(string(data), "\x00"), fds[1:], err
}
