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

// holds is the argument that makes this program the holder of namespaces.
const holds = "holder"

const (
	socketFD = 3
	highFD   = 64 // above the files of a command
)

// view is a thread of the holder with a separate mount namespace, for its operations.
type view struct {
	key    string
	starts chan viewStart
}

// noView is the answer if the mount namespace cannot be made.
const noView = "no view"

// maxViews is the maximum number of mount namespaces to keep. A run alternates between a few.
const maxViews = 8

type viewStart struct {
	words  []string
	fds    []int
	answer chan []string
}

// hold runs the holder until its socket closes, because the process that it belongs to ended.
func hold() {
	stayDeaf()
	preferOOM()
	unix.CloseOnExec(socketFD)
	// Go raises the limit of open files for itself, and restores it before an exec.
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
	if unix.Unshare(unix.CLONE_NEWIPC) == nil {
		has += " ipc"
	}
	if send(socketFD, []string{"", has}, nil) != nil {
		return
	}
	var views []view // the last used at the end
	layers := map[string]bool{}
	for {
		words, fds, err := receive(socketFD)
		if err != nil {
			return
		}
		n, _ := strconv.Atoi(words[0])
		ops, start := words[1:1+n], words[1+n:]
		v := view{key: strings.Join(ops, "\x00")}
		answer := make(chan []string, 1)
		if i := slices.IndexFunc(views, func(other view) bool { return other.key == v.key }); i >= 0 {
			v = views[i]
			views = slices.Delete(views, i, i+1)
		} else {
			if len(views) == maxViews {
				close(views[0].starts)
				views = views[1:]
			}
			lay(layers, ops)
			v.starts = make(chan viewStart)
			go v.serve(ops, inits)
		}
		v.starts <- viewStart{start, fds, answer}
		said := <-answer
		for _, fd := range fds {
			unix.Close(fd)
		}
		if said[0] == noView {
			close(v.starts)
		} else {
			views = append(views, v)
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

// serve creates the namespaces of a view in a separate thread and starts commands there.
func (v view) serve(ops []string, inits inits) {
	runtime.LockOSThread() // for ever: the thread ends with the function
	failed := v.enter(ops)
	for s := range v.starts {
		if failed != nil {
			s.answer <- []string{noView, "", ""}
			continue
		}
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

// startIn starts a command in a new pid namespace, unless it adopts orphans itself.
func (s viewStart) startIn(inits inits) (pid, init int, err error) {
	if strings.Contains(s.words[0], "r") {
		pid, err = s.start()
		return pid, 0, err
	}
	init, err = inits.with(unix.CLONE_PARENT, func() (err error) {
		pid, err = s.start()
		return err
	})
	return pid, init, err
}

// start starts a command in this thread's namespaces.
func (s viewStart) start() (pid int, err error) {
	flags, layers, dir, path := s.words[0], s.words[1], s.words[2], s.words[3]
	e := entry{files: s.fds[:3], rules: s.fds[3], report: s.fds[4], session: strings.Contains(flags, "s")}
	if strings.Contains(flags, "g") {
		e.group = s.fds[len(s.fds)-1]
	}
	if e.open = strings.Contains(flags, "r"); e.open { // it enters the sandbox after all mounts are made
		e.files = nil
		for _, fd := range s.fds {
			high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, highFD)
			if err != nil {
				return 0, err
			}
			defer unix.Close(high)
			e.files = append(e.files, high)
		}
		e.report = e.files[4]
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

// enter creates the mount namespace: the system read-only, and closed directories with only their open paths.
func (v view) enter(ops []string) error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return err
	}
	own := unix.Unshare(unix.CLONE_NEWIPC) == nil
	trees := map[string]int{}
	for i := 0; i+2 < len(ops); i += 3 {
		kind, path := ops[i], ops[i+1]
		at := source(ops, i)
		if at == "" {
			continue
		}
		fd, err := unix.OpenTree(unix.AT_FDCWD, at, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|
			unix.AT_SYMLINK_NOFOLLOW)
		if err != nil {
			return &os.PathError{Op: "open_tree", Path: path, Err: err}
		}
		defer unix.Close(fd)
		trees[path] = fd
		if slices.Contains([]string{opShow, opFix, opFrom, opRead, opShown}, kind) {
			if err := readOnly(fd, ""); err != nil {
				return &os.PathError{Op: "mount_setattr", Path: path, Err: err}
			}
		}
	}
	if err := readOnly(unix.AT_FDCWD, "/"); err != nil {
		return &os.PathError{Op: "mount_setattr", Path: "/", Err: err}
	}
	if own {
		_ = unix.Mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777")
	}
	if _, users := trees["/dev/pts"]; !users {
		err := unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC,
			"newinstance,ptmxmode=0666,mode=620")
		if err == nil {
			err = unix.Mount("/dev/pts/ptmx", "/dev/ptmx", "", unix.MS_BIND, "")
		}
		if err != nil {
			return &os.PathError{Op: "mount", Path: "/dev/pts", Err: err}
		}
	}
	l := layout{ops: ops, trees: trees}
	for i := 0; i+2 < len(ops); i += 3 {
		if err := l.do(ops[i], ops[i+1], ops[i+2]); err != nil {
			return &os.PathError{Op: ops[i], Path: ops[i+1], Err: err}
		}
	}
	return l.shut()
}

// layout is the state while a mount namespace is built.
type layout struct {
	ops    []string
	trees  map[string]int // shown files and directories, by path
	covers []string       // empty file systems
	made   []string       // directories above shown paths
}

// shut forbids listing covered directories and creating files in them, except in directories for temporary files.
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

// mkdir creates a directory and its parents.
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

// do makes one mount. Its mount point exists, or can be created in a covered directory.
func (l *layout) do(kind, path, arg string) error {
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
	if err != nil && kind == opShown { // in a read-only tree
		return nil
	}
	if err != nil {
		return err
	}
	return unix.MoveMount(tree, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// readOnly makes a mount and those below it read-only, including modes and times.
func readOnly(fd int, path string) error {
	flags := uint(unix.AT_RECURSIVE)
	if path == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	return unix.MountSetattr(fd, path, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}
