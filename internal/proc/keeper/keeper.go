// Package keeper waits in a process named Name for the end of its parent. It imports almost nothing, so that it waits
// before the rest of the program is initialised, which takes longer than git's first commands.
package keeper

import (
	"os"
	"path"
	"syscall"
)

// Name is the name of the process.
const Name = "git-tilth-keeper"

// Is reports whether this process is one.
func Is() bool { return len(os.Args) == 2 && os.Args[0] == Name }

// Files are paths, each followed by the content that is put back there.
var Files []string

// init reads standard input, a pipe: files, each text ending in a NUL. It returns at the end, unless an empty path came
// last: all is well then.
func init() {
	if !Is() {
		return
	}
	var said []byte
	part := make([]byte, 4096)
	for {
		n, err := syscall.Read(0, part)
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 {
			return
		}
		for _, c := range part[:n] {
			if c != 0 {
				said = append(said, c)
				continue
			}
			if len(Files)%2 == 0 {
				if len(said) == 0 {
					os.Exit(0)
				}
				lock(path.Dir(string(said)))
			}
			Files, said = append(Files, string(said)), said[:0]
		}
	}
}

// lock locks a directory until this process ends.
func lock(dir string) {
	if fd, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0); err == nil {
		_ = syscall.Flock(fd, syscall.LOCK_SH|syscall.LOCK_NB)
	}
}
