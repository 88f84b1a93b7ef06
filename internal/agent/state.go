package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
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
// logins (files) and conversations (directories, with a slash at the end). A leading hyphen marks a discarded
// directory in a kept one. {tree} is the turn's directory in Claude Code's spelling, "/" is everything.
type state struct {
	place
	keeps []string
}

// inside returns a Box in which the program may write its own state, for a turn in dir, and a function to call after
// the turn. It creates missing state directories, because the sandbox can allow only existing paths.
func (p *Program) inside(b *sandbox.Box, env []string, dir string) (in *sandbox.Box, done func() error, err error) {
	if b == nil {
		return nil, func() error { return nil }, nil
	}
	out := *b.With()
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
			_ = os.MkdirAll(path, 0o700) // the program reports a failed write
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
				lost = append(lost, fmt.Errorf("the new login of %s is in %s and was not copied to %s: %w",
					p.Name, filepath.Join(sandbox.Written(filepath.Join(kept, l.layer)), l.name), l.to, err))
			}
		}
		if lost != nil {
			return errors.Join(errors.Join(lost...), os.Rename(turn, kept))
		}
		for _, dir := range dropped {
			_ = os.Remove(dir) // fails if the user has files in it
		}
		if turn != "" {
			_ = proc.RemoveAll(turn) // the next run removes leftovers
		}
		return nil
	}, nil
}

// makeDir creates a directory. It replaces a link or file that a worker may have created at its path.
func makeDir(path string) error {
	if fi, err := os.Lstat(path); err == nil && !fi.IsDir() {
		_ = os.Remove(path)
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// login is a kept file: its layer in the turn's directory, its name in the layer, and its path.
type login struct{ layer, name, to string }

// TurnDir is the prefix of a directory with the layers of a turn, next to the layers of caches.
const TurnDir = "turn-"

// notWord matches the characters that Claude Code replaces by a hyphen in directory names.
var notWord = pattern.New(`[^A-Za-z0-9]`)

// namesAccount matches the members of a login that name its account. Tokens and times change at a renewal.
var namesAccount = pattern.New(`(?i)account|^active$|e-?mail|user|org|client|subscription|api_?key|auth_?mode|^sub$`)

// sameLogin checks that a turn's file is the renewed login of the account in the user's file.
func sameLogin(was, now []byte) error {
	var before, after map[string]any
	if json.Unmarshal(was, &before) != nil || len(before) == 0 {
		return errors.New("there is no login to renew")
	}
	if json.Unmarshal(now, &after) != nil {
		return errors.New("not a login of this program")
	}
	return sameAccount(before, after)
}

func sameAccount(was, now map[string]any) error {
	for name, before := range was {
		after, is := now[name]
		inner, nested := before.(map[string]any)
		_, text := before.(string)
		more, isNested := after.(map[string]any)
		_, isText := after.(string)
		switch {
		case !is || nested != isNested || text != isText:
			return fmt.Errorf("not a login of this program: wrong %s", name)
		case nested:
			if err := sameAccount(inner, more); err != nil {
				return err
			}
		case namesAccount().MatchString(name) && !reflect.DeepEqual(before, after):
			return fmt.Errorf("the login is of another account: %s", name)
		}
	}
	return nil
}

// keepFile copies a file from a layer of a turn to its path. The file is not mounted, because a program may replace it
// by a rename.
func keepFile(layer, name, to string) error {
	data, err := jsonl.ReadIn(layer, name, maxSettings+1)
	if err == nil && len(data) > maxSettings {
		err = errors.New(name + " is too large to be kept")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var was []byte
	if err == nil {
		was, err = jsonl.ReadIn(filepath.Dir(to), filepath.Base(to), maxSettings)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err == nil {
		err = sameLogin(was, data)
	}
	if err == nil {
		err = jsonl.WriteFile(to, data)
	}
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		return errno // without the names of temporary files
	}
	return err
}
