package sandbox

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// holds is the word by which this program becomes the holder of namespaces.
const holds = "holder"

const socketFD = 3

// view is a thread of the holder with a separate mount namespace.
type view chan viewStart

type viewStart struct {
	words  []string
	fds    []int
	answer chan []string
}

// hold is the holder's life: it ends with the process that it belongs to, when its socket closes.
func hold() {
	stayDeaf()
	preferOOM()
	unix.CloseOnExec(socketFD)
	// Go raises the limit of open files for itself, and takes that back where it is about to execute something.
	_ = syscall.Exec("", nil, nil)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		_ = send(socketFD, []string{"a mount namespace: " + err.Error()}, nil)
		return
	}
	has := "mount"
	inits := newInits()
	if inits >= 0 {
		has += " pid"
	}
	if ipc() {
		has += " ipc"
	}
	if send(socketFD, []string{"", has}, nil) != nil {
		return
	}
	views, layers := map[string]view{}, map[string]bool{}
	for {
		words, fds, err := receive(socketFD)
		if err != nil {
			return
		}
		answer := make(chan []string, 1)
		switch words[0] {
		case "view":
			lay(layers, words[2:])
			v := make(view)
			views[words[1]] = v
			go v.serve(words[2:], inits, answer)
		case "drop":
			close(views[words[1]])
			delete(views, words[1])
			answer <- []string{""}
		case "start":
			views[words[1]] <- viewStart{words[2:], fds, answer}
		}
		said := <-answer
		for _, fd := range fds {
			unix.Close(fd)
		}
		if send(socketFD, said, nil) != nil {
			return
		}
	}
}

// stayDeaf keeps signals for the commands from ending this process. Executed programs get the earlier handlers.
func stayDeaf() {
	for _, sig := range []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGTSTP} {
		if !signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

// ipc reports whether an ipc namespace can be made.
func ipc() bool {
	tried := make(chan bool)
	go func() {
		runtime.LockOSThread() // which ends the thread
		tried <- unix.Unshare(unix.CLONE_NEWIPC) == nil
	}()
	return <-tried
}

// serve makes the namespaces of a view in a separate thread and starts commands there.
func (v view) serve(ops []string, inits inits, made chan<- []string) {
	runtime.LockOSThread() // for ever: the thread ends with the function
	shared, err := v.enter(ops)
	if shared {
		inits = -1
	}
	if err != nil {
		made <- []string{err.Error()}
		return
	}
	made <- []string{""}
	for s := range v {
		pid, init, err := s.startIn(inits)
		said := []string{"", strconv.Itoa(pid), strconv.Itoa(init)}
		if err != nil {
			errno := unix.EINVAL
			_ = errors.As(err, &errno)
			said[0] = strconv.Itoa(int(errno))
		}
		s.answer <- said
	}
}

// startIn starts a command in a new pid namespace, if the system can make one.
func (s viewStart) startIn(inits inits) (pid, init int, err error) {
	if inits < 0 {
		pid, err = s.start()
		return pid, 0, err
	}
	init, err = inits.with(unix.CLONE_PARENT, func() (err error) {
		pid, err = s.start()
		return err
	})
	return pid, init, err
}

// start starts a command as this thread's namespaces have it.
func (s viewStart) start() (pid int, err error) {
	flags, layers, dir, path := s.words[0], s.words[1], s.words[2], s.words[3]
	e := entry{files: [3]int(s.fds[:3]), rules: s.fds[3], report: s.fds[4], caps: true,
		session: strings.Contains(flags, "s")}
	if len(s.fds) > 5 {
		e.group = s.fds[5]
	}
	if dir != "" {
		e.dir, err = syscall.BytePtrFromString(dir)
	}
	if err == nil {
		err = allowOwn(e.rules, strings.Contains(flags, "t"), strings.Split(layers, "\n"))
	}
	count, _ := strconv.Atoi(s.words[4])
	if err == nil {
		err = e.prepare(flags, path, s.words[5:5+count], s.words[5+count:])
	}
	if err != nil {
		return 0, err
	}
	n, errno := e.fork()
	if errno != 0 {
		err = errno
	}
	return int(n), err
}

// enter makes the mount namespace: the system read-only, and closed directories with only their open paths.
func (v view) enter(ops []string) (shared bool, err error) {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return false, err
	}
	own := unix.Unshare(unix.CLONE_NEWIPC) == nil
	trees := map[string]int{}
	for i := 0; i+2 < len(ops); i += 3 {
		kind, path := ops[i], ops[i+1]
		if kind == opShared {
			shared = true
		}
		at := source(ops, i)
		if at == "" {
			continue
		}
		fd, err := unix.OpenTree(unix.AT_FDCWD, at, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|
			unix.AT_SYMLINK_NOFOLLOW)
		if err != nil {
			return false, &os.PathError{Op: "open_tree", Path: path, Err: err}
		}
		defer unix.Close(fd)
		trees[path] = fd
		if slices.Contains([]string{opShow, opFix, opFrom, opRead, opShown}, kind) {
			if err := readOnly(fd, ""); err != nil {
				return false, &os.PathError{Op: "mount_setattr", Path: path, Err: err}
			}
		}
	}
	if err := readOnly(unix.AT_FDCWD, "/"); err != nil {
		return false, &os.PathError{Op: "mount_setattr", Path: "/", Err: err}
	}
	if own {
		_ = unix.Mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777")
	}
	if _, users := trees["/dev/pts"]; !users {
		err = unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC,
			"newinstance,ptmxmode=0666,mode=620")
		if err == nil {
			err = unix.Mount("/dev/pts/ptmx", "/dev/ptmx", "", unix.MS_BIND, "")
		}
		if err != nil {
			return false, &os.PathError{Op: "mount", Path: "/dev/pts", Err: err}
		}
	}
	l := layout{ops: ops, trees: trees}
	for i := 0; i+2 < len(ops); i += 3 {
		if err := l.do(ops[i], ops[i+1], ops[i+2]); err != nil {
			return false, &os.PathError{Op: ops[i], Path: ops[i+1], Err: err}
		}
	}
	return shared, l.shut()
}

// layout is the state while a mount namespace is laid out.
type layout struct {
	ops    []string
	trees  map[string]int // shown files and directories, by path
	covers []string       // empty file systems
	made   []string       // directories above shown paths
}

// shut forbids listing and creating files in covered directories, except in directories for temporary files.
func (l *layout) shut() error {
	for _, dir := range slices.Backward(l.made) {
		if err := os.Chmod(dir, 0o111); err != nil {
			return err
		}
	}
	for _, dir := range l.covers {
		if isTemp(dir) {
			continue
		}
		err := os.Chmod(dir, 0o111)
		if err == nil {
			err = unix.MountSetattr(unix.AT_FDCWD, dir, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
		}
		if err != nil {
			return &os.PathError{Op: "shut", Path: dir, Err: err}
		}
	}
	return nil
}

func isTemp(dir string) bool { return dir == "/tmp" || dir == "/var/tmp" }

// mkdir makes a directory with those above it.
func (l *layout) mkdir(dir string) error {
	if _, err := os.Lstat(dir); err == nil {
		return nil
	}
	if err := l.mkdir(filepath.Dir(dir)); err != nil {
		return err
	}
	l.made = append(l.made, dir)
	return os.Mkdir(dir, 0o755)
}

// do does one step. Its mount point exists, or is in a covered directory, where it can be made.
func (l *layout) do(kind, path, arg string) error {
	if kind == opShared {
		return nil
	}
	if kind == opText {
		return showText(l.ops, path, arg[strings.Index(arg, "\n")+1:])
	}
	if err := l.mkdir(filepath.Dir(path)); err != nil {
		return err
	}
	switch kind {
	case opLink:
		return os.Symlink(arg, path)
	case opCover:
		mode := "mode=755"
		if isTemp(path) {
			mode = "mode=1777"
		}
		l.covers = append(l.covers, path)
		return unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, mode)
	case opBlank:
		return unix.Mount(os.DevNull, path, "", unix.MS_BIND, "")
	}
	tree := l.trees[path]
	var st unix.Stat_t
	err := unix.Fstatat(tree, "", &st, unix.AT_EMPTY_PATH)
	if _, missing := os.Lstat(path); err == nil && missing != nil {
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			err = os.Mkdir(path, 0o755)
		} else {
			err = os.WriteFile(path, nil, 0o600)
		}
	}
	if err != nil && kind == opShown { // in a tree that may only be read
		return nil
	}
	if err != nil {
		return err
	}
	return unix.MoveMount(tree, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// readOnly lets nothing be written, not even a mode or a time, at a mount and those below it.
func readOnly(fd int, path string) error {
	flags := uint(unix.AT_RECURSIVE)
	if path == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	return unix.MountSetattr(fd, path, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}
