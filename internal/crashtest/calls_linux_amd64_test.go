package crashtest

import "golang.org/x/sys/unix"

// oldChanges are calls that newer architectures lack; the C library uses them if they exist.
var oldChanges = map[uint64]change{
	unix.SYS_OPEN: opens("open", -1, 0, 1), unix.SYS_CREAT: onPath("open", -1, 0),
	unix.SYS_RENAME: onPath("rename", -1, 0),
	unix.SYS_UNLINK: onPath("unlink", -1, 0), unix.SYS_RMDIR: onPath("unlink", -1, 0),
	unix.SYS_MKDIR: onPath("mkdir", -1, 0),
	unix.SYS_LINK:  onPath("link", -1, 1), unix.SYS_SYMLINK: onPath("symlink", -1, 1),
}
