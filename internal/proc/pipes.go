package proc

import (
	"cmp"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// pipes are the child's standard streams. os/exec cannot make them, because the read ends must be closable while a
// process still writes: so an escaped process cannot hang Run.
type pipes struct {
	child   []*os.File // ends that only the child needs
	in      *os.File
	out     *os.File
	err     *os.File
	readers sync.WaitGroup
	done    chan struct{} // closed once the readers have seen the end

	mu     sync.Mutex // guards the buffers: a reader that is cut off may still run
	outBuf headTail
	errBuf headTail
}

// maxHeadErr limits the kept standard error of a command with HeadOnly, in bytes.
const maxHeadErr = 64 << 10

// connect creates a command's pipes and gives it its ends.
func connect(cmd *exec.Cmd, c Cmd) (*pipes, error) {
	limit := cmp.Or(c.OutputCap, defaultOutputCap)
	p := &pipes{done: make(chan struct{}), outBuf: headTail{limit: limit, headOnly: c.HeadOnly},
		errBuf: headTail{limit: limit}}
	if c.Clean != nil {
		p.outBuf.clean, p.outBuf.margin = c.Clean, maxSecret
		p.errBuf.clean, p.errBuf.margin = c.Clean, maxSecret
	}
	if c.HeadOnly {
		p.errBuf.limit = maxHeadErr
	}
	var err error
	if p.out, cmd.Stdout, err = p.outward(); err != nil {
		p.abandon()
		return nil, err
	}
	cmd.Stderr = cmd.Stdout
	if c.SeparateStderr || c.OnErrLine != nil {
		if p.err, cmd.Stderr, err = p.outward(); err != nil {
			p.abandon()
			return nil, err
		}
	}
	if c.Stdin == nil {
		return p, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		p.abandon()
		return nil, err
	}
	p.in, cmd.Stdin = w, r
	p.child = append(p.child, r)
	return p, nil
}

func (p *pipes) outward() (*os.File, io.Writer, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	p.child = append(p.child, w)
	return r, w, nil
}

// closeChildEnds drops this process's copies of the child's ends, without which there would never be an end of file.
func (p *pipes) closeChildEnds() {
	for _, f := range p.child {
		f.Close()
	}
	p.child = nil
}

// abandon closes all pipes of a child that did not start.
func (p *pipes) abandon() {
	p.closeChildEnds()
	for _, f := range []*os.File{p.in, p.out, p.err} {
		if f != nil {
			f.Close()
		}
	}
}

// begin starts to feed and to read the child.
func (p *pipes) begin(c Cmd) {
	if p.in != nil {
		go func(w *os.File) {
			// A child that does not read its input is not an error.
			_, _ = io.Copy(w, c.Stdin)
			w.Close()
		}(p.in)
	}
	p.read(p.out, &p.outBuf, cmp.Or(c.MaxLine, maxLine), c.OnLine)
	if p.err != nil {
		p.read(p.err, &p.errBuf, maxLine, c.OnErrLine)
	}
	go func() { p.readers.Wait(); close(p.done) }()
}

func (p *pipes) read(f *os.File, buf *headTail, max int, onLine func([]byte)) {
	p.readers.Go(func() {
		var lines *lineSplitter
		if onLine != nil {
			lines = &lineSplitter{fn: onLine, max: max}
			defer lines.Close()
		}
		chunk := make([]byte, 32<<10)
		for {
			n, err := f.Read(chunk)
			p.mu.Lock()
			buf.Write(chunk[:n])
			full := buf.headOnly && buf.total > int64(buf.limit)
			p.mu.Unlock()
			if lines != nil {
				lines.Write(chunk[:n])
			}
			if full {
				f.Close()
			}
			if full || err != nil {
				return
			}
		}
	})
}

// drain waits for the end of the output while output arrives, and reports whether it ended. It reads the pipes until
// they are empty, but does not wait for an unknown process that still has them open.
func (p *pipes) drain() bool {
	tick := time.NewTicker(drainWait)
	defer tick.Stop()
	for round, seen := 0, int64(-1); round < drainRounds; round++ {
		select {
		case <-p.done:
			return true
		case <-tick.C:
		}
		p.mu.Lock()
		now := p.outBuf.total + p.errBuf.total
		p.mu.Unlock()
		if now == seen {
			break
		}
		seen = now
	}
	return false
}

// finish closes the pipes and collects their output.
func (p *pipes) finish(out *Outcome) {
	p.abandon()
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	var cutOut, cutErr bool
	out.Output, cutOut = p.outBuf.Bytes()
	if p.err != nil {
		out.Stderr, cutErr = p.errBuf.Bytes()
	}
	out.Truncated = cutOut || cutErr && !p.outBuf.headOnly
}
