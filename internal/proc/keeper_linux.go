package proc

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// After a kill of this process, the kernel ends its pid namespaces, and the processes above its other commands end
// these. A watchdog does the rest. It is a second process of this program, one for each process that runs commands. It
// waits at a pipe until this process and all those above commands have ended, ends the remaining control groups, and
// restores files that a command may have replaced (KeepFile). It locks the directories of these files, so that
// EndStale can wait for it.

// Keep starts a watchdog with the first command: after it if that is Lasting, else before it. Call forget before a
// normal exit. Everything works without a watchdog too.
func Keep() (forget func()) {
	var once sync.Once
	end := func() {}
	startKeeper = func() { once.Do(func() { end = launch() }) }
	return func() {
		once.Do(func() {})
		end()
	}
}

// startKeeper starts the keeper that Keep has asked for, once.
var startKeeper = func() {}

// launch starts the keeper. end tells it that the process ended normally.
func launch() (end func()) {
	r, w, err := os.Pipe()
	if err != nil {
		return func() {}
	}
	defer r.Close()
	child := &exec.Cmd{Path: "/proc/self/exe", Args: []string{keeperName, strconv.Itoa(os.Getpid())}, Dir: "/",
		Env: []string{}, Stdin: r, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	keptFiles.Lock()
	defer keptFiles.Unlock()
	for path := range keptFiles.content { // the keeper gets these locks, so that they hold before it has begun to read
		if lock, err := lockDir(filepath.Dir(path), unix.LOCK_SH|unix.LOCK_NB); err == nil {
			defer lock.Close()
			child.ExtraFiles = append(child.ExtraFiles, lock)
		}
	}
	if child.Start() != nil {
		w.Close()
		return func() {}
	}
	keptFiles.pipe = w
	for path, content := range keptFiles.content {
		keptFiles.send(path, content)
	}
	return func() {
		keptFiles.Lock()
		keptFiles.pipe = nil
		keptFiles.Unlock()
		_, _ = w.Write([]byte{0})
		w.Close()
		_ = child.Wait()
	}
}

// keeperPipe returns the pipe for a process that the keeper waits for, nil without a keeper.
func keeperPipe() *os.File {
	keptFiles.Lock()
	defer keptFiles.Unlock()
	return keptFiles.pipe
}

// fileList is a list of files with their contents, and the pipe to the keeper, if it runs.
type fileList struct {
	sync.Mutex
	content map[string]string
	pipe    *os.File
}

var keptFiles = fileList{content: map[string]string{}}

func (l *fileList) send(path, content string) {
	if l.pipe != nil {
		_, _ = l.pipe.WriteString(path + "\x00" + content + "\x00")
	}
}

// KeepFile makes the watchdog restore a small file after it has ended everything, if the file's directory still
// exists.
func KeepFile(path, content string) {
	keptFiles.Lock()
	defer keptFiles.Unlock()
	if keptFiles.content[path] != content {
		keptFiles.content[path] = content
		keptFiles.send(path, content)
	}
}

// putBack makes path a file with a content. It moves a directory at path next to its parent directory.
func putBack(path, content string) {
	dir := filepath.Dir(path)
	if fi, err := os.Lstat(dir); err != nil || !fi.IsDir() || os.Chmod(dir, fi.Mode().Perm()|0o700) != nil {
		return
	}
	if fi, err := os.Lstat(path); err == nil && fi.IsDir() {
		aside := dir + time.Now().UTC().Format(".found-20060102-150405")
		_ = os.Mkdir(aside, 0o700)
		_ = os.Rename(path, filepath.Join(aside, filepath.Base(path)))
	}
	f, err := os.CreateTemp(dir, ".tilth-")
	if err != nil {
		return
	}
	_, err = f.WriteString(content)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil || os.Rename(f.Name(), path) != nil {
		_ = os.Remove(f.Name())
	}
}

// EndStale waits for the keepers of killed processes that worked in dirs, and ends control groups that no keeper ended.
// Call it only from the one process that may work there.
func EndStale(dirs ...string) {
	for _, dir := range dirs {
		keptFiles.Lock()
		_, ours := keptFiles.content[filepath.Join(dir, ".git")]
		keptFiles.Unlock()
		for end := time.Now().Add(keeperTime); !ours && time.Now().Before(end); time.Sleep(keeperPause) {
			lock, err := lockDir(dir, unix.LOCK_EX|unix.LOCK_NB)
			if err == nil {
				lock.Close()
			}
			if !errors.Is(err, unix.EWOULDBLOCK) {
				break
			}
		}
	}
	endGroups(func(pid int) bool { return unix.Kill(pid, 0) == unix.ESRCH })
}

const (
	keeperTime  = 5 * time.Second
	keeperPause = 5 * time.Millisecond // between two rounds
	keeperRest  = 10 * time.Second     // the longest pause, if the kernel cannot end a process
)

// keeperName is the name of the process.
const keeperName = "git-tilth-keeper"

// lockedDirs keeps the locks until the keeper ends.
var lockedDirs []*os.File

// init runs a keeper, before the rest of the program is initialised. It reads standard input, a pipe: files, each text
// ending in a NUL. An empty path means that the process ended normally.
func init() {
	if len(os.Args) != 2 || os.Args[0] != keeperName {
		return
	}
	var files []string
	for in := bufio.NewReader(os.Stdin); ; {
		said, err := in.ReadString(0)
		if err != nil {
			break
		}
		said = strings.TrimSuffix(said, "\x00")
		if len(files)%2 == 0 {
			if said == "" {
				unix.Exit(0)
			}
			if lock, err := lockDir(filepath.Dir(said), unix.LOCK_SH|unix.LOCK_NB); err == nil {
				lockedDirs = append(lockedDirs, lock)
			}
		}
		files = append(files, said)
	}
	parent, _ := strconv.Atoi(os.Args[1])
	for round := 0; !endGroups(func(pid int) bool { return pid == parent }); round++ {
		time.Sleep(min(keeperPause<<min(round, 12), keeperRest))
	}
	for i := 0; i+1 < len(files); i += 2 {
		putBack(files[i], files[i+1])
	}
	unix.Exit(0)
}
