package proc

import "os"

// Above returns the ids of the processes above this one, its parent first. What a command of a run starts cannot get
// out from below that run while it lives: its orphans become the run's own children.
func Above() []int {
	var pids []int
	for pid := os.Getpid(); len(pids) < maxDepth; {
		p, ok := readStat(pid)
		if !ok || p.parent <= 0 {
			break
		}
		pid = p.parent
		pids = append(pids, pid)
	}
	return pids
}

// maxDepth bounds how far up is looked: a parent's id can be reused while the way up is read.
const maxDepth = 1000
