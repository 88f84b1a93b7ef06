package gitx

import "syscall"

// changedAt is when a file's content, owner, mode or number of names last changed.
func changedAt(st *syscall.Stat_t) int64 { return st.Ctim.Nano() }
