package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/proc"
)

// history names a conversation and its directory for a search in a store.
type history struct {
	program *Program
	env     []string // environment of the program
	dir     string   // with symlinks resolved
	id      string   // "" for any
}

// Stored looks up a conversation in the program's store, for a resume in dir. It is gone if it is missing, has no
// message or belongs to another directory. If the store cannot be read, the program's answer decides. why is one line
// for the user.
func (p *Program) Stored(env []string, dir, id string) (gone bool, why string) {
	switch {
	case id == "":
		return true, "no conversation is stored"
	case !p.CanResume:
		return true, p.Name + " cannot resume a conversation"
	case !p.valid(id):
		return true, "not an id of " + p.Name
	case p.acp != nil, p.store == nil:
		return false, "only a resume shows whether " + p.Name + " still has it"
	}
	return p.store.state(&history{program: p, env: env, dir: proc.RealPath(dir), id: id})
}

// discover finds the newest conversation that began in exactly dir at or after since, or "". It skips the ids in
// except, for example those of other tasks.
func (p *Program) discover(env []string, dir string, since time.Time, except ...string) (id string, err error) {
	if p.store == nil || !p.CanResume {
		return "", nil
	}
	return p.store.newest(&history{program: p, env: env, dir: proc.RealPath(dir)}, since, except)
}

// transcripts is the store of a program that keeps each conversation in one file, with a JSON object per line.
type transcripts struct {
	word    string                             // the program's word for such a file
	missing string                             // the program's message for an id without a file
	files   func(h *history) ([]string, error) // files of h.id, or all for ""
	// head handles one of a file's first lines. Until head sets another id, the id is the file's name.
	head func(t *transcript, line gjson.Result)
}

// transcript has the facts in a file's first lines.
type transcript struct {
	id, cwd  string
	began    time.Time
	messages int // lower limit
}

// headLines is the number of lines read at the start of a transcript, which has the facts.
const headLines = 50

func (ts *transcripts) read(path string) (transcript, error) {
	name := filepath.Base(path)
	t := transcript{id: strings.TrimSuffix(name, filepath.Ext(name))}
	return t, eachLine(path, headLines, func(line gjson.Result) { ts.head(&t, line) })
}

func (ts *transcripts) state(h *history) (gone bool, why string) {
	name := h.program.Name
	paths, err := ts.files(h)
	if err != nil {
		return false, name + "'s store cannot be read: " + err.Error()
	}
	gone, why = true, name+" has no "+ts.missing
	for _, path := range paths {
		t, err := ts.read(path)
		switch {
		case err != nil:
			gone, why = false, "its "+ts.word+" cannot be read: "+err.Error()
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

// newest returns the newest conversation of the session in h.dir, or "".
func (ts *transcripts) newest(h *history, since time.Time, except []string) (id string, err error) {
	paths, err := ts.files(h)
	var began time.Time
	for _, path := range paths {
		// The conversation ended before the session began.
		if info, err := os.Stat(path); err != nil || info.ModTime().Before(since) {
			continue
		}
		t, err := ts.read(path)
		if err != nil || t.messages == 0 || t.began.Before(since) || !t.began.After(began) || t.cwd == "" {
			continue
		}
		if proc.RealPath(t.cwd) == h.dir && !slices.Contains(except, t.id) && h.program.valid(t.id) {
			id, began = t.id, t.began
		}
	}
	return id, err
}

// eachLine calls fn for the objects among the first n lines of a file.
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
