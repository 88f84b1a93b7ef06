package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/view"
)

// process holds the environment of this process: streams, arguments, variables, signals.
type process struct {
	ctx         context.Context
	dir         string
	environ     []string
	stdin       *os.File
	lines       *text.Lines // of stdin: the user's answers
	stdout      *output
	stderr      *os.File
	stopSignals func()

	traits          map[*cli.Command]traits
	args            []string // as typed
	verbose, dryRun bool
	gitFlags        []string  // flags for git diff, as typed
	gitPaths        []string  // arguments after --, for git diff
	changes         bool      // the command may change something
	runs            bool      // the exit code reports the end of a run
	planOut         io.Writer // for the git commands of a dry run; nil for standard output
	traceMu         sync.Mutex
	interrupted     func() bool
	twice           atomic.Bool // after a second signal
	editing         atomic.Bool // an editor has the terminal and gets Ctrl-C
}

// output is standard output.
type output struct {
	file *os.File
	tty  bool
	json bool // output is JSON with escaped text; other output is already sanitized
	mu   sync.Mutex
	part []byte // an incomplete character
	err  error  // first write error
}

func (o *output) Write(b []byte) (int, error) {
	shown := b
	if o.tty || o.json {
		o.mu.Lock()
		shown, o.part = text.Escaped(append(o.part, b...))
		o.mu.Unlock()
	}
	_, err := o.file.Write(shown)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = cmp.Or(o.err, err)
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// failed returns the first write error.
func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

func newProcess() *process {
	dir, err := os.Getwd()
	if err != nil {
		dir = "." // git reports the deleted directory
	}
	p := &process{dir: dir, environ: os.Environ(), stdin: os.Stdin, lines: text.NewLines(os.Stdin),
		stdout: &output{file: os.Stdout, tty: isTerminal(os.Stdout)}, stderr: os.Stderr}
	p.watchSignals()
	return p
}

// getenv returns a variable of the process's environment.
func (p *process) getenv(name string) string { return proc.Getenv(p.environ, name) }

// now returns the current time.
func (p *process) now() time.Time { return proc.Now() }

// git returns a gitx.Git that prints its commands with -v.
func (p *process) git(dry bool) *gitx.Git { return gitx.New(p.environ, dry, p.trace) }

func (p *process) trace(c gitx.Call) {
	if !p.verbose && !(p.dryRun && c.Skipped) {
		return
	}
	words := []string{"git", "-C", c.Dir}
	for _, arg := range c.Args {
		words = append(words, text.WithoutPassword(arg))
	}
	line := text.Visible(text.ShellQuote(words...))
	p.traceMu.Lock()
	defer p.traceMu.Unlock()
	took := c.Took.Round(100 * time.Microsecond).String()
	if c.Ahead {
		took += ", ahead"
	}
	switch {
	case c.Skipped:
		fmt.Fprintf(cmp.Or[io.Writer](p.planOut, p.stdout), "would run: %s\n", line)
	case c.Err != nil:
		fmt.Fprintf(p.stderr, "+ %s  (%s, failed)\n", line, took)
	default:
		fmt.Fprintf(p.stderr, "+ %s  (%s)\n", line, took)
	}
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// interactive reports whether git-tilth can ask the user: standard input and standard error are terminals.
func (p *process) interactive() bool { return isTerminal(p.stdin) && isTerminal(p.stderr) }

// printf prints lines for people and escapes untrusted text in them.
func (p *process) printf(format string, args ...any) {
	fmt.Fprint(p.stdout, text.Visible(fmt.Sprintf(format, args...)))
}

func (p *process) printJSON(v any) error {
	enc := json.NewEncoder(p.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// humanOut returns the writer for plans and notes: with --json, standard output has only events.
func (p *process) humanOut(asJSON bool) io.Writer {
	if asJSON {
		return p.stderr
	}
	return p.stdout
}

func (p *process) warnf(format string, args ...any) {
	fmt.Fprint(p.stderr, text.Visible(fmt.Sprintf(format, args...)))
}

// confirm asks a yes-or-no question, unless yes is set. The default answer is no, which returns an error with the text
// otherwise. Without a terminal it does not ask, and the error names the flag to use.
func (p *process) confirm(yes bool, question, otherwise string) error {
	if yes || p.dryRun {
		return nil
	}
	if !p.interactive() {
		return refuse("", "this needs a confirmation, and there is no terminal to ask on; -y answers yes")
	}
	fmt.Fprintf(p.stderr, "%s [y/N] ", question)
	line, err := p.readLine()
	if err != nil {
		fmt.Fprintln(p.stderr)
		return err
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return &exitError{code: exitNo, msg: otherwise}
	}
	return nil
}

// readLine reads one line of standard input, or stops when the context ends. At the end of the input it returns an
// empty line.
func (p *process) readLine() (string, error) {
	line, err := p.lines.Next(p.ctx)
	switch {
	case p.ctx.Err() != nil:
		return "", context.Canceled
	case err == io.EOF:
		return "", nil
	}
	return line, err
}

// await returns the result of do, or the context's error if the context ends first. Otherwise a read from a pipe
// without a writer could block for ever.
func await[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type outcome struct {
		v   T
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		v, err := do()
		done <- outcome{v, err}
	}()
	select {
	case o := <-done:
		return o.v, o.err
	case <-ctx.Done():
		return *new(T), ctx.Err()
	}
}

// terminal returns the terminal properties of standard output.
func (p *process) terminal(asJSON bool) view.Terminal {
	t := p.shownOn(p.stdout.file)
	t.JSON = asJSON
	return t
}

// shownOn returns the terminal properties of a file.
func (p *process) shownOn(f *os.File) view.Terminal {
	t := view.Terminal{TTY: isTerminal(f), Now: p.now()}
	if !t.TTY {
		return t
	}
	t.Color = p.getenv("NO_COLOR") == "" && p.getenv("TERM") != "dumb"
	if w, h, err := term.GetSize(int(f.Fd())); err == nil {
		t.Width, t.Height = w, h
	}
	return t
}
