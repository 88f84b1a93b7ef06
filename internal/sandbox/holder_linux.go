package sandbox

import (
	"errors"
	"fmt"
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

// view is a thread of the holder with a mount namespace of its own.
type view chan viewStart

type viewStart struct {
	words  []string
	fds    []int
	answer chan []string
}

// hold is the holder's life: it ends with the process that it belongs to, when its socket closes.
func hold() {
	stayDeaf()
	unix.CloseOnExec(socketFD)
	// Go raises the limit of open files for itself, and takes that back where it is about to execute something.
	_ = syscall.Exec("", nil, nil)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		_ = send(socketFD, []string{"a mount namespace: " + err.Error()}, nil)
		return
	}
	has := "mount"
	pid, pidNS, life, err := startInit()
	if err == nil {
		defer endInit(pid, life)
		has += " pid"
	}
	if ipc() {
		has += " ipc"
	}
	if send(socketFD, []string{"", strconv.Itoa(pid), has}, nil) != nil {
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
			go v.serve(words[2:], pidNS, answer)
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

// startInit starts the first process of a pid namespace, which ends with this one, and all in the namespace with it. It
// mounts the /proc of that namespace, for which it has to be in it. The pipe that is its life stays open for as long as
// this process lives.
func startInit() (pid, namespace, pipe int, err error) {
	var life, ready [2]int
	if err := unix.Pipe2(life[:], unix.O_CLOEXEC); err != nil {
		return 0, 0, 0, err
	}
	defer unix.Close(life[0])
	if err := unix.Pipe2(ready[:], unix.O_CLOEXEC); err != nil {
		return 0, 0, 0, err
	}
	defer unix.Close(ready[0])
	pid, err = (&first{life: life[0], ready: ready[1]}).fork()
	unix.Close(ready[1])
	if err != nil {
		return 0, 0, 0, err
	}
	// Its /proc covers the one in which it has this number.
	namespace, err = unix.Open(fmt.Sprintf("/proc/%d/ns/pid", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_, err = unix.Write(life[1], []byte{1})
	}
	if n, _ := unix.Read(ready[0], make([]byte, 1)); err == nil && n != 1 {
		err = unix.EPERM
	}
	if err != nil {
		unix.Close(life[1])
		pid, namespace = 0, -1
	}
	return pid, namespace, life[1], err
}

// endInit kills init and waits for it, because with a subreaper above it would stay as a zombie.
func endInit(pid, life int) {
	unix.Close(life)
	_, _ = unix.Wait4(pid, nil, 0, nil)
}

// serve makes the namespaces of a view in a thread of its own and starts commands there.
func (v view) serve(ops []string, pidNS int, made chan<- []string) {
	runtime.LockOSThread() // for ever: the thread ends with the function
	shared, err := v.enter(ops)
	if err == nil && pidNS >= 0 && !shared {
		err = unix.Setns(pidNS, unix.CLONE_NEWPID)
	}
	if err != nil {
		made <- []string{err.Error()}
		return
	}
	made <- []string{""}
	for s := range v {
		pid, err := s.start()
		said := []string{"", strconv.Itoa(pid)}
		if err != nil {
			errno := unix.EINVAL
			_ = errors.As(err, &errno)
			said[0] = strconv.Itoa(int(errno))
		}
		s.answer <- said
	}
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
		at := path
		switch kind {
		case opLayer:
			at = layerMount(ops[i+2])
		case opCopy:
			at = ops[i+2]
		case opShow, opTouch, opWrite:
		default:
			continue
		}
		fd, err := unix.OpenTree(unix.AT_FDCWD, at, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|
			unix.AT_SYMLINK_NOFOLLOW)
		if err != nil {
			return false, &os.PathError{Op: "open_tree", Path: path, Err: err}
		}
		defer unix.Close(fd)
		trees[path] = fd
		if kind == opShow {
			if err := readOnly(fd, ""); err != nil {
				return false, &os.PathError{Op: "mount_setattr", Path: path, Err: err}
			}
		}
	}
	if shared {
		_ = unix.Unmount("/proc", unix.MNT_DETACH) // what is below is the one from outside
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
	l := layout{trees: trees}
	for i := 0; i+2 < len(ops); i += 3 {
		if err := l.do(ops[i], ops[i+1], ops[i+2]); err != nil {
			return false, &os.PathError{Op: ops[i], Path: ops[i+1], Err: err}
		}
	}
	return shared, l.shut()
}

// layout is the state while a mount namespace is laid out.
type layout struct {
	trees  map[string]int // what is shown, by its path
	covers []string       // empty file systems
	made   []string       // directories in them, on the way to what is shown
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

// do does one step. What it needs to stand on is there, or in a directory that was covered and so can be made.
func (l *layout) do(kind, path, arg string) error {
	if kind == opShared {
		return nil
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
