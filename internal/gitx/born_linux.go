package gitx

import "golang.org/x/sys/unix"

// born returns the creation time of a directory, if the file system stores it.
func born(path string) int64 {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st) != nil {
		return 0
	}
	return st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
}
