package agent

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/proc"
)

// store reads one program's conversations. state is Stored's answer; newest returns "" where there is none.
type store interface {
	state(ctx context.Context, h *history) (gone bool, why string)
	newest(ctx context.Context, h *history, since time.Time, except []string) (id string, err error)
}

// history names the conversation and directory that a store is asked about.
type history struct {
	program *Program
	env     []string // in which the program would run
	dir     string   // symlinks resolved
	id      string   // "" for any
}

// anyID is a glob pattern for the first n characters of the id.
func (h *history) anyID(n int) string {
	if h.id == "" {
		return "*"
	}
	return h.id[:n]
}

// Stored looks a conversation up in the program's own store, as it would be resumed from dir. One that is gone is not
// there, holds no message or belongs to another directory. Where the store cannot be read, the program's own answer
// decides. why is one line for people.
func (p *Program) Stored(ctx context.Context, env []string, dir, id string) (gone bool, why string) {
	switch {
	case id == "":
		return true, "no conversation is stored"
	case !p.CanResume:
		return true, p.Name + " cannot resume a conversation"
	case !p.valid(id):
		return true, "not an id of " + p.Name
	case p.acp != nil:
		return false, "whether " + p.Name + " still has it, it will say itself"
	case p.store == nil:
		return false, "the store of " + p.Name + " is not known; it will say itself"
	}
	return p.store.state(ctx, &history{program: p, env: env, dir: proc.RealPath(dir), id: id})
}

// discover finds the newest conversation that was begun in exactly dir at or after since, "" for none. Ids in except,
// such as those of other tasks, are passed over.
func (p *Program) discover(
	ctx context.Context, env []string, dir string, since time.Time, except ...string,
) (id string, err error) {
	if p.store == nil || !p.CanResume {
		return "", nil
	}
	return p.store.newest(ctx, &history{program: p, env: env, dir: proc.RealPath(dir)}, since, except)
}

// transcripts is the store of a program that keeps each conversation in a file of its own, a JSON object a line.
type transcripts struct {
	word    string // what such a file is called
	missing string // what the program has none of where an id has no file
	// files are those of h.id, or all for "". fs.ErrNotExist means that nothing was ever stored for h.dir.
	files func(h *history) ([]string, error)
	// head takes one of a file's first lines. Until head says otherwise, the id is the file's name.
	head func(h *history, t *transcript, line gjson.Result)
}

// transcript is what the first lines of a file tell.
type transcript struct {
	id, cwd  string
	began    time.Time
	messages int // at least this many
}

// headLines bounds how much of a transcript is read: what is looked for stands at its beginning.
const headLines = 50

func (ts *transcripts) read(h *history, path string) (transcript, error) {
	name := filepath.Base(path)
	t := transcript{id: strings.TrimSuffix(name, filepath.Ext(name))}
	return t, eachLine(path, headLines, func(line gjson.Result) { ts.head(h, &t, line) })
}

// each calls fn for all lines that the store holds of a conversation. What cannot be read is left out.
func (ts *transcripts) each(h *history, fn func(gjson.Result)) {
	if h.id == "" || !h.program.valid(h.id) {
		return
	}
	paths, _ := ts.files(h)
	for _, path := range paths {
		_ = eachLine(path, -1, fn)
	}
}

func (ts *transcripts) state(_ context.Context, h *history) (gone bool, why string) {
	name := h.program.Name
	paths, err := ts.files(h)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, name + " has no " + ts.word + " of this directory"
	case err != nil:
		return false, name + "'s store cannot be read: " + err.Error()
	}
	gone, why = true, name+" has no "+ts.missing
	for _, path := range paths {
		t, err := ts.read(h, path)
		switch {
		case err != nil:
			gone, why = false, "its "+ts.word+" cannot be read: "+err.Error()
		case t.id != h.id && !strings.Contains(path, h.id):
			// A file's name may hold only a part of the id.
		case t.messages == 0:
			gone, why = true, "its "+ts.word+" is empty"
		case t.cwd != "" && proc.RealPath(t.cwd) != h.dir:
			gone, why = true, "its "+ts.word+" belongs to the directory "+t.cwd
		default:
			return false, name + " has its " + ts.word
		}
	}
	return gone, why
}

func (ts *transcripts) newest(_ context.Context, h *history, since time.Time, except []string) (string, error) {
	paths, err := ts.files(h)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	best := candidate{h: h, since: since, except: except}
	for _, path := range paths {
		// What was last written before the session began must have begun before.
		if info, err := os.Stat(path); err != nil || info.ModTime().Before(since) {
			continue
		}
		if t, err := ts.read(h, path); err == nil && t.messages > 0 {
			best.offer(t.id, t.cwd, t.began)
		}
	}
	return best.id, err
}

// candidate keeps the newest conversation of the session that it is offered.
type candidate struct {
	h      *history
	since  time.Time
	except []string
	id     string
	began  time.Time
}

func (c *candidate) offer(id, cwd string, began time.Time) {
	if began.IsZero() || began.Before(c.since) || !began.After(c.began) {
		return
	}
	if cwd != "" && proc.RealPath(cwd) == c.h.dir && !slices.Contains(c.except, id) && c.h.program.valid(id) {
		c.id, c.began = id, began
	}
}

// eachLine calls fn for the first n objects of a file, all for a negative n.
func eachLine(path string, n int, fn func(gjson.Result)) error {
	_, _, err := jsonl.Scan(path, 0, func(_ int64, line []byte) error {
		if e, ok := event(line); ok {
			fn(e)
		}
		if n--; n == 0 {
			return jsonl.ErrStop
		}
		return nil
	})
	return err
}
