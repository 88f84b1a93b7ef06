package scripttest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tidwall/gjson"
	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/session"
)

// packet is the capacity of a pipe in packet mode with one slot, in bytes.
const packet = 4096

// killAfter runs a command that prints its events (--json) and kills it with its children when the Nth event of a type
// that it writes is on disk, before it does anything else.
//
// The command is held at each event by its own output: a pipe in packet mode with one slot. Once an event is on disk
// and not yet taken from the pipe, the next one can be written to disk, but not to the pipe. So the test checks the
// newest event on disk, and takes the event in the pipe only if the newest is not the one to kill at.
func killAfter(ts *testscript.TestScript, _ bool, args []string) {
	need(ts, args, 4, "killafter TYPE N VAR CMD ARGS...")
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	record := filepath.Join(ts.Getenv("TILTH_SESSIONS_DIR"), ts.Getenv(args[2]), "events.jsonl")
	h := &heldRun{record: record, skip: len(recordLines(record)), pipe: make([]int, 2)}
	ts.Check(unix.Pipe2(h.pipe, unix.O_DIRECT|unix.O_CLOEXEC))
	_, err = unix.FcntlInt(uintptr(h.pipe[0]), unix.F_SETPIPE_SZ, packet)
	ts.Check(err)
	defer unix.Close(h.pipe[0])
	out := os.NewFile(uintptr(h.pipe[1]), "events")
	cmd := exec.Command(args[3], args[4:]...)
	cmd.Dir, cmd.Env, cmd.Stdout = ts.MkAbs("."), environ(ts), out
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	ts.Check(cmd.Start())
	out.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	deadline := time.After(patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if h.reached(args[0], n) {
			ts.Check(unix.Kill(-cmd.Process.Pid, unix.SIGKILL))
			<-ended
			// git, which started the run, has ended; the run itself may take a moment longer to release the lock.
			s := &session.Session{ID: ts.Getenv(args[2]), Dir: filepath.Dir(record)}
			wait(ts, "the end of the run", func() bool { _, busy := s.Holder(); return !busy })
			return
		}
		select {
		case err := <-ended:
			ts.Fatalf("it ended (%v) before event %d of type %s", err, n, args[0])
		case <-deadline:
			_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
			ts.Fatalf("no event %d of type %s within %s", n, args[0], patience)
		case <-tick.C:
		}
	}
}

// heldRun is a command that is held at each of its events.
type heldRun struct {
	record      string
	pipe        []int
	skip, taken int // events that were there before; events that were taken from the pipe
}

// reached lets the command continue as far as allowed, and reports whether the nth event of a type is the last on
// disk.
func (h *heldRun) reached(typ string, n int) bool {
	for {
		written := recordLines(h.record)[h.skip:]
		seen := 0
		for _, line := range written {
			if gjson.GetBytes(line, "type").Str == typ {
				seen++
			}
		}
		if seen >= n {
			return true
		}
		waiting, err := unix.IoctlGetInt(h.pipe[0], unix.TIOCINQ)
		if err != nil || waiting == 0 || waiting < packet && len(written) < h.taken+2 {
			return false
		}
		buf := make([]byte, packet)
		got, err := unix.Read(h.pipe[0], buf)
		if err != nil || got == 0 {
			return false
		}
		h.taken += bytes.Count(buf[:got], []byte("\n"))
	}
}

// recordLines returns the complete lines of a record, none before the session has begun.
func recordLines(path string) [][]byte {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if i := bytes.LastIndexByte(data, '\n'); i >= 0 {
		return bytes.Split(data[:i], []byte("\n"))
	}
	return nil
}
