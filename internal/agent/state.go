package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// state is a place that a program writes. What it writes to it in a turn goes with the turn: settings, memory, hooks
// and plugins are obeyed by its next conversation and by the user's own. What stays is in keeps, by names in the place:
// logins, which are files, and conversations, which are directories with a slash at the end; {tree} is the directory
// that the turn is for, as Claude Code writes it. "/" is all.
type state struct {
	place
	keeps []string
}

// inside returns a Box in which the program may write its own state, for a turn in dir, and what is to be done after
// it. A directory of the state that is not there yet is made, because only what is there can be allowed; a file is not.
func (p *Program) inside(b *sandbox.Box, env []string, dir string) (in *sandbox.Box, done func() error, err error) {
	if b == nil {
		return nil, func() error { return nil }, nil
	}
	out := *b.With()
	out.SharePIDs = true // its locks may hold a process's number
	out.Terminals = p.acp != nil && p.acp.terminals
	turn := ""
	if b.Layers != "" {
		in := filepath.Dir(b.Layers)
		if err = os.MkdirAll(in, 0o700); err == nil {
			turn, err = os.MkdirTemp(in, TurnDir)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	var logins []login
	for i, s := range p.state {
		path := s.in(env)
		if filepath.Ext(path) != ".json" {
			_ = os.MkdirAll(path, 0o700) // without it the program says itself what it cannot write
		}
		if turn == "" || len(s.keeps) == 1 && s.keeps[0] == "/" {
			out.Write = append(out.Write, path)
			continue
		}
		layer := filepath.Join(turn, strconv.Itoa(i))
		if fi, err := os.Stat(path); err == nil && fi.Mode().IsRegular() {
			if data, err := os.ReadFile(path); err != nil || os.WriteFile(layer, data, 0o600) != nil {
				continue
			}
		}
		out.State = append(out.State, sandbox.Layer{Path: path, In: layer})
		for _, name := range s.keeps {
			name = strings.ReplaceAll(name, "{tree}", notWord().ReplaceAllString(proc.RealPath(dir), "-"))
			at := filepath.Join(path, name)
			if strings.HasSuffix(name, "/") {
				if os.MkdirAll(at, 0o700) == nil {
					out.Through = append(out.Through, at)
				}
				continue
			}
			logins = append(logins, login{strconv.Itoa(i), name, at})
		}
	}
	return &out, func() error {
		var lost []error
		kept := strings.Replace(turn, TurnDir, "kept-", 1)
		for _, l := range logins {
			if err := keepFile(sandbox.Written(filepath.Join(turn, l.layer)), l.name, l.to); err != nil {
				lost = append(lost, fmt.Errorf("the login that %s renewed is in %s: it cannot be written to %s: %w",
					p.Name, filepath.Join(sandbox.Written(filepath.Join(kept, l.layer)), l.name), l.to, err))
			}
		}
		if lost != nil {
			return errors.Join(errors.Join(lost...), os.Rename(turn, kept))
		}
		if turn != "" {
			_ = proc.RemoveAll(turn) // what stays goes when the next run begins
		}
		return nil
	}, nil
}

// login is a file that stays: its layer in the turn's directory, its name there, and where it belongs.
type login struct{ layer, name, to string }

// TurnDir begins the name of a directory that has the layers of a turn, beside those of caches.
const TurnDir = "turn-"

// notWord is what Claude Code writes as a hyphen in the name of a directory's own.
var notWord = pattern.New(`[^A-Za-z0-9]`)

// keepFile takes over a file that a turn wrote to a layer. A program may write it in place or by another file of its
// name, which would take a mount away.
func keepFile(layer, name, to string) error {
	data, err := jsonl.ReadIn(layer, name, maxSettings+1)
	if err == nil && len(data) > maxSettings {
		err = errors.New(name + " is too large to be kept")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = jsonl.WriteFile(to, data)
	}
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		return errno // without the names of temporary files
	}
	return err
}
