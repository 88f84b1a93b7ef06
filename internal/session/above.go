package session

import (
	"fmt"
	"maps"
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
// lock, "" if there is none that is known. A lock whose file names another process, or none, is another program's, as
// of flock(1) around this command: the session is in use, and nobody is inside of it. Sessions are looked for in the
// root, and in dirs, which are places of sessions wherever they lie; dirs is not called where none of the processes has
// a lock.
func (st Store) RunAbove(pids []int, dirs func() []string) string {
	held := flocks()
	maps.DeleteFunc(held, func(_ string, pid int) bool { return !slices.Contains(pids, pid) })
	if len(held) == 0 {
		return ""
	}
	ids, _ := st.IDs()
	places := dirs()
	for _, id := range ids {
		places = append(places, filepath.Join(st.Root, id))
	}
	for _, dir := range places {
		s := Session{ID: filepath.Base(dir), Dir: dir}
		var st unix.Stat_t
		if !ValidID(s.ID) || unix.Lstat(s.Path(LockFile), &st) != nil || held[lockName(&st)] == 0 {
			continue
		}
		if s.noted().PID == held[lockName(&st)] {
			return s.ID
		}
	}
	return ""
}

// flocks are the processes that have an exclusive flock, by the name that /proc/locks gives the file. A line there:
// "3: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF".
func flocks() map[string]int {
	held := map[string]int{}
	data, _ := os.ReadFile("/proc/locks")
	for line := range strings.Lines(string(data)) {
		if w := strings.Fields(line); len(w) > 5 && w[1] == "FLOCK" && w[3] == "WRITE" {
			held[w[5]], _ = strconv.Atoi(w[4])
		}
	}
	return held
}

// lockName names a file as /proc/locks does.
func lockName(st *unix.Stat_t) string {
	return fmt.Sprintf("%02x:%02x:%d", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)), st.Ino)
}
