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

// state is a directory or file that a program writes. The end of a turn discards the changes, because later
// conversations and the user's own would obey changed settings, memory, hooks and plugins. keeps names the exceptions:
// logins (files) and conversations (directories, with a slash at the end). A leading hyphen marks a directory in a kept
// one that is discarded as well. {tree} is the turn's directory in Claude Code's spelling, "/" is everything.
type state struct {
	place
	keeps []string
}

// inside returns a Box in which the program may write its own state, for a turn in dir, and a function to call after
// the turn. It makes missing directories of the state, because only an existing path can be allowed, but no files.
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
	var dropped []string
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
		for j, name := range s.keeps {
			name, drops := strings.CutPrefix(name, "-")
			name = strings.ReplaceAll(name, "{tree}", notWord().ReplaceAllString(proc.RealPath(dir), "-"))
			at := filepath.Join(path, name)
			if drops {
				if makeDir(at) == nil {
					dropped = append(dropped, at)
					layer := filepath.Join(turn, fmt.Sprint(i, "-", j))
					out.State = append(out.State, sandbox.Layer{Path: at, In: layer})
				}
				continue
			}
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
		for _, dir := range dropped {
			_ = os.Remove(dir) // fails where the user has something there
		}
		if turn != "" {
			_ = proc.RemoveAll(turn) // what stays goes when the next run begins
		}
		return nil
	}, nil
}

// makeDir makes a directory in place of a link or a file that a worker may have put there.
func makeDir(path string) error {
	if fi, err := os.Lstat(path); err == nil && !fi.IsDir() {
		_ = os.Remove(path)
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// login is a file that stays: its layer in the turn's directory, its name there, and where it belongs.
type login struct{ layer, name, to string }

// TurnDir begins the name of a directory that has the layers of a turn, beside those of caches.
const TurnDir = "turn-"

// notWord matches the characters that Claude Code replaces with a hyphen in directory names.
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
