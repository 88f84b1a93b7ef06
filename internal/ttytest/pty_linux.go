package ttytest

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// Run starts a program in a session of its own at a new terminal of this size and returns the terminal's other end.
func Run(cmd *exec.Cmd, rows, columns uint16) (*os.File, error) {
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	theirs, err := terminalOf(ours, rows, columns)
	if err == nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		err = cmd.Start()
		theirs.Close()
	}
	if err != nil {
		ours.Close()
		return nil, err
	}
	return ours, nil
}

// terminalOf sets a new terminal up and opens it.
func terminalOf(ours *os.File, rows, columns uint16) (*os.File, error) {
	conn, err := ours.SyscallConn()
	if err != nil {
		return nil, err
	}
	var number uint32
	control := conn.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
		}
		if err == nil {
			number, err = unix.IoctlGetUint32(int(fd), unix.TIOCGPTN)
		}
	})
	if control != nil {
		return nil, control
	}
	if err != nil {
		return nil, err
	}
	return os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
}
