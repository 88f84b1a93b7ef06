package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Tree is all processes of a command: in its pid namespace, or below a process that adopts its orphans. It may be nil.
type Tree struct {
	// Root is a child of this process and the parent of orphans: the first process of the namespace, or the started
	// process itself, which then ends with the command's exit status.
	Root         int
	life, status *os.File // of an adopting process: closing life kills all; status closes when the command ended
	once         sync.Once
}

// Wait waits for the command.
func (t *Tree) Wait(cmd *exec.Cmd) error {
	if t == nil || t.status == nil {
		return cmd.Wait()
	}
	_, _ = t.status.Read(make([]byte, 1))
	return nil
}

// Kill kills everything in the tree, also if it forks meanwhile.
func (t *Tree) Kill() {
	switch {
	case t == nil:
	case t.life != nil:
		t.life.Close()
	default:
		_ = unix.Kill(t.Root, unix.SIGKILL)
	}
}

// patience limits the wait for a process that the kernel cannot end, which blocks its pid namespace.
const patience = 5 * time.Second

var errPatience = errors.New("the processes did not end after SIGKILL")

// End kills everything in the tree and waits for it. Call it once, after Wait. The error is that of cmd.Wait.
func (t *Tree) End(cmd *exec.Cmd) (err error) {
	if t == nil {
		return nil
	}
	t.once.Do(func() {
		t.Kill()
		ended := make(chan error, 1)
		go func() {
			if t.life != nil {
				ended <- cmd.Wait()
				t.status.Close()
				return
			}
			defer close(ended)
			for {
				if _, err := unix.Wait4(t.Root, nil, 0, nil); err != unix.EINTR {
					break
				}
			}
		}()
		select {
		case err = <-ended:
		case <-time.After(patience):
			err = errPatience
		}
	})
	return err
}
