// The tools of the builtin worker: six tools that act on one worktree, and the guard of its shell.
//
// The rules that hold here:
//
//   - File tools reach the worktree through one os.Root, so that neither `..`, an absolute path, a symlink nor a race
//     leads out of it. They cannot see git's own `.git`.
//   - A missing worktree directory is an error. It is never made again: in a plain directory, git would act on an
//     enclosing repository.
//   - Every call is answered with a text that the model can act on.

package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/text"
)

const (
	defaultBashTimeout = 2 * time.Minute
	maxBashTimeout     = 10 * time.Minute // longest timeout that a command may ask for
	bashOutput         = 30_000           // kept bytes of a command's output
)

// ToolOptions configure a BuiltinTools. Zero values are the defaults.
type ToolOptions struct {
	Env         []string      // environment of bash commands; nil is this process's
	Sandbox     *sandbox.Box  // rights of bash commands; nil is no sandbox
	BashTimeout time.Duration // time limit of a command that sets none (2 minutes)
	// Clean redacts secrets in output before it is cut.
	Clean func(string) string
	// Protected are directories that no command may name, except the worktree itself if it is in one of them.
	Protected []string
	ReadOnly  bool // only read_file, glob and grep
	// Before may block a call that the policy allows. The model gets the reason.
	Before func(ctx context.Context, name, args string) (reason string, blocked bool)
}

// BuiltinTools has the tools of one worktree. It is safe for concurrent use, but does not order two calls that write
// the same file.
type BuiltinTools struct {
	dir   string      // the worktree's absolute path, as the caller names it
	real  string      // the same path with symlinks resolved
	root  *os.Root    // opened at dir
	self  os.FileInfo // the directory of root
	opts  ToolOptions
	guard guard
}

// OpenTools opens a BuiltinTools for the existing directory root.
func OpenTools(root string, o ToolOptions) (*BuiltinTools, error) {
	dir, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	o.fill()
	b := &BuiltinTools{dir: dir, opts: o}
	if b.real, err = filepath.EvalSymlinks(dir); err == nil {
		b.root, err = os.OpenRoot(b.real)
	}
	if err == nil {
		b.self, err = b.root.Stat(".")
	}
	if err != nil {
		return nil, fmt.Errorf("worktree %s: %w", dir, cause(err))
	}
	b.guard = newGuard([]string{dir, b.real}, o.Protected, o.Env)
	if !o.ReadOnly {
		b.removeStaleTemps()
	}
	return b, nil
}

func (o *ToolOptions) fill() {
	if o.Env == nil {
		o.Env = os.Environ()
	}
	o.BashTimeout = cmp.Or(o.BashTimeout, defaultBashTimeout)
}

// Close releases the worktree.
func (b *BuiltinTools) Close() error { return b.root.Close() }

// ToolAnswer is the answer to one tool call.
type ToolAnswer struct {
	Output string // the text for the model: valid UTF-8, never empty
	Chars  int    // the number of characters in Output
	// IsError reports that the call failed. A command with a non-zero exit code did not fail.
	IsError bool
	Blocked string // reason of the refusal by the policy, or ""
	Edited  string // path of the written file, relative to the worktree
	Err     error  // ends the turn and leaves the call without an answer; no tool of this package sets it
}

// blocked is an error of the policy, independent of the files.
type blocked struct{ reason string }

func (e *blocked) Error() string { return "blocked: " + e.reason }

// errGone is the answer of every tool if the worktree no longer exists.
var errGone = errors.New("the worktree directory is gone; nothing was read or written")

// Call runs one tool. args has the arguments as the model wrote them. The answer to an invalid call has the expected
// form.
func (b *BuiltinTools) Call(ctx context.Context, name, args string) ToolAnswer {
	t, err := b.find(name)
	if err != nil {
		return failure(err)
	}
	in, err := decode(t, args)
	if err != nil {
		return failure(err)
	}
	if err := t.check(b, &in); err != nil {
		return failure(err)
	}
	if b.opts.Before != nil {
		if reason, isBlocked := b.opts.Before(ctx, name, args); isBlocked {
			return failure(&blocked{reason})
		}
	}
	if err := b.present(); err != nil {
		return failure(err)
	}
	if err := ctx.Err(); err != nil {
		return failure(errInterrupted)
	}
	res, err := t.run(b, ctx, in)
	if err != nil {
		return failure(err)
	}
	return finished(res)
}

var errInterrupted = errors.New("interrupted before it was done")

// present checks that the worktree's name still leads to the opened directory.
func (b *BuiltinTools) present() error {
	now, err := os.Stat(b.real)
	if err != nil || !os.SameFile(now, b.self) {
		return errGone
	}
	return nil
}

// tools returns the tools that this BuiltinTools offers.
func (b *BuiltinTools) tools() []toolDef {
	return slices.DeleteFunc(tools(), func(t toolDef) bool { return b.opts.ReadOnly && t.writes })
}

func (b *BuiltinTools) find(name string) (*toolDef, error) {
	var names []string
	for _, t := range b.tools() {
		if t.name == name {
			return &t, nil
		}
		names = append(names, t.name)
	}
	return nil, fmt.Errorf("there is no tool %q; the tools here are %s", text.Clip(name, 60), strings.Join(names, ", "))
}

// Specs returns the tools as a JSON array for an OpenAI-style request, with the caller's own tools.
func (b *BuiltinTools) Specs(more ...json.RawMessage) json.RawMessage {
	specs := []any{}
	for _, t := range b.tools() {
		specs = append(specs, t.spec())
	}
	for _, own := range more {
		specs = append(specs, own)
	}
	data, _ := json.Marshal(specs) // strings, and JSON made by this program
	return data
}

func failure(err error) ToolAnswer {
	res := ToolAnswer{Output: "error: " + err.Error(), IsError: true}
	if block, ok := errors.AsType[*blocked](err); ok {
		res.Output = err.Error()
		res.Blocked = block.reason
	}
	return finished(res)
}

func finished(res ToolAnswer) ToolAnswer {
	res.Output = sendable(res.Output)
	if res.Output == "" {
		res.Output = "(nothing)"
	}
	res.Chars = utf8.RuneCountInString(res.Output)
	return res
}

// sendable escapes control characters (\x00), except those of ordinary text, because some endpoints refuse a request
// with them.
func sendable(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	isControl := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' }
	if !strings.ContainsFunc(s, isControl) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isControl(r) {
			fmt.Fprintf(&b, `\x%02x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
