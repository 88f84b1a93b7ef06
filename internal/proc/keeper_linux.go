package proc

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/proc/keeper"
)

// The children of a killed process continue, because no process is left to end them. A keeper is a second process of
// this program, one for each process that runs commands. It waits at a pipe for the end of the first process, kills
// everything that the first has started, and puts files back that a command may have replaced (KeepFile).
//
// It recognises these processes by a limit that every process inherits and none uses: the soft limit of RLIMIT_RTTIME,
// which matters for real-time processes only, is set to a number drawn for this process. Unlike the environment, the
// session or the parent, it survives env -i, setsid and a double fork. A process that changes the limit escapes, unless
// its parent does not.
//
// The keeper is a child in a separate session; the registry knows that it belongs to no command.

const (
	keeperPause = 5 * time.Millisecond // between two rounds
	keeperRest  = 10 * time.Second     // the longest pause, where the kernel cannot end a process
)

// Keep makes all later children of this process die within a moment after it, also after a SIGKILL. Call forget before
// a normal exit. Without a keeper nothing changes.
//
// The keeper starts with the first command: after it if that is Lasting, else before it.
func Keep() (forget func()) {
	var was unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_RTTIME, &was) != nil {
		return func() {}
	}
	marked := was
	marked.Cur = drawMark(was.Max)
	if unix.Setrlimit(unix.RLIMIT_RTTIME, &marked) != nil {
		return func() {}
	}
	var once sync.Once
	end := func() {}
	startKeeper = func() { once.Do(func() { end = launch(marked.Cur) }) }
	return func() {
		once.Do(func() {})
		_ = unix.Setrlimit(unix.RLIMIT_RTTIME, &was)
		end()
	}
}

// startKeeper starts the keeper that Keep has asked for, once.
var startKeeper = func() {}

// launch starts the keeper of a mark. end tells it that the process ended normally.
func launch(mark uint64) (end func()) {
	r, w, err := os.Pipe()
	if err != nil {
		return func() {}
	}
	defer r.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		w.Close()
		return func() {}
	}
	defer null.Close()
	registry.Lock() // until it is registered, see registry
	defer registry.Unlock()
	child, err := os.StartProcess("/proc/self/exe", []string{keeper.Name, strconv.FormatUint(mark, 10),
		strconv.Itoa(os.Getpid())}, &os.ProcAttr{Dir: "/", Env: []string{}, Files: []*os.File{r, null, null},
		Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		w.Close()
		return func() {}
	}
	registry.detached[child.Pid] = true
	registry.keeper = child.Pid
	keptFiles.Lock()
	defer keptFiles.Unlock()
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
		_, _ = child.Wait()
	}
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

// KeepFile makes the keeper put a small file back after it has ended everything, if its directory is still there.
func KeepFile(path, content string) {
	keptFiles.Lock()
	defer keptFiles.Unlock()
	if keptFiles.content[path] != content {
		keptFiles.content[path] = content
		keptFiles.send(path, content)
	}
}

// putBack makes path a file with a content. A directory there is moved next to its parent directory.
func putBack(path, content string) {
	dir := filepath.Dir(path)
	if fi, err := os.Lstat(dir); err != nil || !fi.IsDir() || os.Chmod(dir, fi.Mode().Perm()|0o700) != nil {
		return
	}
	fi, err := os.Lstat(path)
	if err == nil && fi.Mode().IsRegular() && fi.Size() == int64(len(content)) {
		if data, err := os.ReadFile(path); err == nil && string(data) == content {
			return
		}
	}
	if err == nil && fi.IsDir() {
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

// drawMark draws a number below a limit, far from usual values.
func drawMark(most uint64) uint64 {
	most = min(most, math.MaxInt64)
	return most - 1 - rand.Uint64N(most/2)
}

// init kills the marked processes after the keeper has waited.
func init() {
	if !keeper.Is() {
		return
	}
	mark, err := strconv.ParseUint(os.Args[1], 10, 64)
	if err != nil {
		os.Exit(1)
	}
	pid, err := strconv.Atoi(os.Args[2])
	if err != nil {
		os.Exit(1)
	}
	runtime.LockOSThread()
	killMarked(mark, pid)
	for i := 0; i+1 < len(keeper.Files); i += 2 {
		putBack(keeper.Files[i], keeper.Files[i+1])
	}
	os.Exit(0)
}

// killMarked kills all processes with a mark, all below them and all in the groups of a process, until none is left.
func killMarked(mark uint64, pid int) {
	form := strconv.FormatUint(mark, 10)
	for round := 1; ; round++ {
		groupless := endGroups(pid)
		family := marked(form)
		for _, p := range family {
			p.signal(unix.SIGKILL)
		}
		if groupless && len(family) == 0 && len(marked(form)) == 0 {
			return
		}
		time.Sleep(min(keeperPause<<max(0, min(round-200, 12)), keeperRest))
	}
}

// marked lists the living processes with a mark and their descendants.
func marked(form string) (family []process) {
	all := processes()
	in := map[int]bool{}
	for _, p := range all {
		in[p.pid] = p.pid != os.Getpid() && !p.zombie && isMarked(p.pid, form)
	}
	for more := true; more; {
		more = false
		for _, p := range all {
			if !in[p.pid] && in[p.parent] && p.pid != os.Getpid() {
				in[p.pid], more = true, true
			}
		}
	}
	for _, p := range all {
		if in[p.pid] && !p.zombie {
			family = append(family, p)
		}
	}
	return family
}

func isMarked(pid int, form string) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	if err != nil {
		return false
	}
	_, rest, found := strings.Cut(string(data), "Max realtime timeout")
	fields := strings.Fields(rest)
	return found && len(fields) > 0 && fields[0] == form
}
