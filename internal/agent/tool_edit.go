package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/git-tilth/git-tilth/internal/text"
)

// editCap is the largest file that edit_file takes.
const editCap = 32 << 20

func (b *BuiltinTools) editFile(_ context.Context, in arguments) (ToolAnswer, error) {
	name, rel := in.text["path"], in.rel
	old, repl := []byte(in.text["old_string"]), []byte(in.text["new_string"])
	switch {
	case len(old) == 0:
		return ToolAnswer{}, errors.New("old_string is empty; use write_file to make a file")
	case bytes.Equal(old, repl):
		return ToolAnswer{}, errors.New("old_string and new_string are the same; nothing was changed")
	}
	data, err := b.readWhole(name, rel)
	if err != nil {
		return ToolAnswer{}, err
	}
	out, line, err := replaceOnce(data, old, repl)
	if err != nil {
		return ToolAnswer{}, fmt.Errorf("%s: %w", text.Clip(name, 200), err)
	}
	if _, err := b.save(name, rel, out); err != nil {
		return ToolAnswer{}, err
	}
	return ToolAnswer{Output: fmt.Sprintf("edited %s at line %d", rel, line), Edited: rel}, nil
}

func (b *BuiltinTools) readWhole(name, rel string) ([]byte, error) {
	f, info, err := b.open(name, rel)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.IsDir() {
		return nil, fmt.Errorf("%s is a directory", text.Clip(name, 200))
	}
	data, err := io.ReadAll(io.LimitReader(f, editCap+1))
	switch {
	case err != nil:
		return nil, describePath(name, err)
	case len(data) > editCap:
		return nil, fmt.Errorf("%s is too large to edit (%d bytes)", text.Clip(name, 200), info.Size())
	case isBinary(data):
		return nil, fmt.Errorf("%s is a binary file", text.Clip(name, 200))
	}
	return data, nil
}

// replaceOnce replaces the only occurrence of old, and returns the line where it begins. In a file with CRLF lines, old
// and repl may have LF, and the result has CRLF.
func replaceOnce(data, old, repl []byte) (out []byte, line int, err error) {
	crlf := usesCRLF(data)
	if crlf {
		repl = toCRLF(repl)
	}
	n := occurrences(data, old)
	if n == 0 && crlf {
		old = toCRLF(old)
		n = occurrences(data, old)
	}
	switch {
	case n == 0:
		return nil, 0, errors.New("old_string does not occur in the file (0 matches): read the file again; " +
			"white space counts")
	case n > 1:
		return nil, 0, fmt.Errorf("old_string occurs %d times and must occur once; "+
			"add lines around it to make it unique", n)
	}
	i := bytes.Index(data, old)
	out = make([]byte, 0, len(data)-len(old)+len(repl))
	out = append(append(append(out, data[:i]...), repl...), data[i+len(old):]...)
	if bytes.Equal(out, data) {
		return nil, 0, errors.New("the replacement changes nothing")
	}
	return out, 1 + bytes.Count(data[:i], []byte("\n")), nil
}

// occurrences counts every place where sub begins, overlapping ones too: each of
// them is a place that could have been meant.
func occurrences(data, sub []byte) int {
	n := 0
	for i := 0; ; n++ {
		j := bytes.Index(data[i:], sub)
		if j < 0 {
			return n
		}
		i += j + 1
	}
}

// usesCRLF reports whether every line of a file ends in CRLF.
func usesCRLF(data []byte) bool {
	n := bytes.Count(data, []byte("\r\n"))
	return n > 0 && n == bytes.Count(data, []byte("\n"))
}

func toCRLF(p []byte) []byte {
	p = bytes.ReplaceAll(p, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))
}
