package session

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// MarkVar is the variable by which what a run starts can tell that it is inside of it; its value is the session's id.
const MarkVar = "TILTH_INSIDE"

// Mark is the mark of what a run of this session starts, as a line of its environment.
func (s *Session) Mark() string { return MarkVar + "=" + s.ID }

// RunAbove is the id of a session that one of these processes is writing now, by the kernel's word on who holds its
// lock, "" if there is none that is known. Sessions are looked for in the root, and in dirs, which are places of
// sessions wherever they lie.
func (st Store) RunAbove(pids []int, dirs []string) string {
	held := flocksOf(pids)
	if len(held) == 0 {
		return ""
	}
	ids, _ := st.IDs()
	for _, id := range ids {
		dirs = append(dirs, filepath.Join(st.Root, id))
	}
	for _, dir := range dirs {
		for _, p := range []string{dir, filepath.Join(dir, LockFile)} {
			if inode, ok := inodeOf(p); ok && held[inode] && ValidID(filepath.Base(dir)) {
				return filepath.Base(dir)
			}
		}
	}
	return ""
}

// flocksOf returns the files, as /proc/locks names them, on which one of these processes has an exclusive flock.
func flocksOf(pids []int) map[string]bool {
	held := map[string]bool{}
	data, _ := os.ReadFile("/proc/locks")
	for line := range strings.Lines(string(data)) {
		if w := strings.Fields(line); len(w) > 5 && w[1] == "FLOCK" && w[3] == "WRITE" {
			if pid, err := strconv.Atoi(w[4]); err == nil && slices.Contains(pids, pid) {
				held[w[5]] = true
			}
		}
	}
	return held
}

// inodeOf names a file as /proc/locks does.
func inodeOf(path string) (string, bool) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return "", false
	}
	return lockName(&st), true
}

func lockName(st *unix.Stat_t) string {
	return fmt.Sprintf("%02x:%02x:%d", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)), st.Ino)
}
