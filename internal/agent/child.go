package agent

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// outputKept is how much of a program's standard output is kept beside what is read from it as it comes.
const outputKept = 64 << 10

// startChild runs a turn's command to its end. onOut gets each line of standard output, onErr each line of standard error;
// they are called from different goroutines.
func startChild(ctx context.Context, t *Turn, cmd *command, onOut, onErr func([]byte)) (result, error) {
	errs, err := openErrorPipe(onErr)
	if err != nil {
		return result{}, err
	}
	res, err := proc.Run(ctx, proc.Cmd{
		Argv: errs.wrap(cmd.argv), Dir: t.Dir, Env: cmd.env, Stdin: strings.NewReader(cmd.stdin),
		Timeout: t.Timeout, Grace: grace, OutputCap: outputKept, OnLine: onOut,
	})
	errs.close()
	if err != nil {
		return result{}, err
	}
	return result{exit: res.ExitCode, signal: res.Signal, timedOut: res.TimedOut, canceled: res.Canceled, stderr: errs.kept.String()}, nil
}

// errorPipe is a program's standard error, read line by line while the program runs: some programs say only there
// which conversation they began, or that they will now wait for hours. It is a named pipe that the program's shell opens,
// and this process has it open for writing too. So it has no end as long as some stray child lives, and is ended by a line
// of our own.
type errorPipe struct {
	dir  string
	file *os.File
	last string
	done chan struct{}
	kept headTail
}

func openErrorPipe(onLine func([]byte)) (*errorPipe, error) {
	dir, err := os.MkdirTemp("", "git-tilth-agent-")
	if err != nil {
		return nil, err
	}
	p := &errorPipe{dir: dir, last: "end of standard error " + newUUID(), done: make(chan struct{})}
	if err := syscall.Mkfifo(p.path(), 0o600); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	if p.file, err = os.OpenFile(p.path(), os.O_RDWR, 0); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	go p.read(onLine)
	return p, nil
}

func (p *errorPipe) path() string { return filepath.Join(p.dir, "stderr") }

// wrap lets a shell connect the pipe and then become the program.
func (p *errorPipe) wrap(argv []string) []string {
	return append([]string{"/bin/sh", "-c", `exec 2>"$1"; shift; exec "$@"`, "sh", p.path()}, argv...)
}

func (p *errorPipe) read(onLine func([]byte)) {
	defer close(p.done)
	r := bufio.NewReaderSize(p.file, 64<<10)
	for {
		line, err := readLine(r)
		if strings.HasSuffix(string(line), p.last) {
			return
		}
		p.kept.add(string(line))
		onLine(line)
		if err != nil {
			return
		}
	}
}

// close ends the reading and takes the pipe away.
func (p *errorPipe) close() {
	_, err := p.file.WriteString("\n" + p.last + "\n")
	if err == nil {
		<-p.done
	}
	err = errors.Join(err, p.file.Close(), os.RemoveAll(p.dir))
	// The program has ended; a pipe that cannot be removed hurts nobody.
	_ = err
}

// headTail keeps the first and the last lines of what it gets, each cut.
type headTail struct{ head, tail []string }

const (
	keptLines = 40
	keptLine  = 2000
)

func (h *headTail) add(line string) {
	line = cut(line, keptLine)
	if len(h.head) < keptLines {
		h.head = append(h.head, line)
		return
	}
	if h.tail = append(h.tail, line); len(h.tail) > 2*keptLines {
		h.tail = append(h.tail[:0], h.tail[keptLines:]...)
	}
}

func (h *headTail) String() string {
	return strings.TrimSpace(strings.Join(append(append([]string{}, h.head...), h.tail...), "\n"))
}
