package proc

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// dieWithUs makes a child end when this process is killed.
func dieWithUs(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = unix.SIGKILL }

// members returns the living processes of a tree: the command, if it is not gone, and all that descends from it and
// from the process that gets orphans.
func (f *family) members() []process {
	out := descendants(f.tree.Root)
	if leader, ok := readStat(f.leader); ok && !f.gone && f.leader != f.tree.Root {
		out = append(append(out, leader), descendants(f.leader)...)
	}
	return slices.DeleteFunc(out, func(p process) bool { return p.zombie })
}

func (f *family) signalMembers(sig syscall.Signal) {
	for _, p := range f.members() {
		p.signal(sig)
	}
}

// alive reports whether a process is left after the command has exited. On a kernel that does not list children it
// returns false.
func (f *family) alive() bool {
	if f.tree == nil {
		return unix.Kill(-f.leader, 0) == nil
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", f.tree.Root))
	return err != nil || len(strings.Fields(string(children))) > 0
}

// exceeds returns the setting of the limit that the process tree exceeds, or "". It first checks the whole machine.
func (f *family) exceeds(processes, memory int64) (setting string) {
	many, large := sandbox.Tasks() > processes, sandbox.Used() > memory
	if !many && !large {
		return ""
	}
	members := f.members()
	if many && int64(len(members)) > processes {
		return "tilth.maxProcesses"
	}
	var used int64
	for _, p := range members {
		used += p.memory()
	}
	if large && used > memory {
		return "tilth.maxMemory"
	}
	return ""
}
