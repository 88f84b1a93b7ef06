package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/git-tilth/git-tilth/internal/text"
)

// editCap is the largest file that edit_file can edit.
const editCap = 32 << 20

func (b *BuiltinTools) editFile(_ context.Context, in arguments) (ToolAnswer, error) {
	name, rel := in.text["path"], in.rel
	old, repl := []byte(in.text["old_string"]), []byte(in.text["new_string"])
	if len(old) == 0 {
		return ToolAnswer{}, errors.New("old_string is empty; use write_file to make a file")
	}
	data, size, err := b.read(name, rel, editCap)
	if err != nil {
		return ToolAnswer{}, err
	}
	if len(data) > editCap {
		return ToolAnswer{}, fmt.Errorf("%s is too large to edit (%d bytes)", text.Clip(name, 200), size)
	}
	if usesCRLF(data) {
		old, repl = toCRLF(old), toCRLF(repl)
	}
	at := bytes.Index(data, old)
	switch {
	case bytes.Equal(old, repl):
		return ToolAnswer{}, errors.New("old_string and new_string are the same; nothing was changed")
	case at < 0:
		return ToolAnswer{}, fmt.Errorf("%s: old_string does not occur in the file (0 matches): read the file again; "+
			"white space counts", text.Clip(name, 200))
	case at != bytes.LastIndex(data, old):
		return ToolAnswer{}, fmt.Errorf("%s: old_string occurs more than once; add lines around it to make it unique",
			text.Clip(name, 200))
	}
	out := slices.Concat(data[:at], repl, data[at+len(old):])
	if _, err := b.save(name, rel, out); err != nil {
		return ToolAnswer{}, err
	}
	line := 1 + bytes.Count(data[:at], []byte("\n"))
	return ToolAnswer{Output: fmt.Sprintf("edited %s at line %d", rel, line), Edited: rel}, nil
}

// usesCRLF reports whether every line of a file ends in CRLF. Models write LF.
func usesCRLF(data []byte) bool {
	n := bytes.Count(data, []byte("\r\n"))
	return n > 0 && n == bytes.Count(data, []byte("\n"))
}

func toCRLF(p []byte) []byte {
	p = bytes.ReplaceAll(p, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))
}
