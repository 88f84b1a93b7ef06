package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// decode fills the struct that dst points to from a JSON object. The error is that of the first member that does not
// fit its field, except for members in loose. All other fields are filled in any case.
func decode(data []byte, dst any, loose ...string) error {
	if string(bytes.TrimSpace(data)) == "null" {
		return errors.New("is null, want an object")
	}
	err := json.Unmarshal(data, dst)
	if err == nil {
		return nil
	}
	if misfit, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && misfit.Field != "" {
		name, _, _ := strings.Cut(misfit.Field, ".")
		if slices.Contains(loose, name) {
			return nil
		}
		return fmt.Errorf("%q %w", misfit.Field, jsonError(data, err))
	}
	return jsonError(data, err)
}

// encode returns v in the format of the session's JSON files: two spaces, a newline at the end. old is the file's
// previous text. encode keeps the members of old that T does not know, at any depth.
func encode[T any](v *T, old []byte) ([]byte, error) {
	text, err := jsonl.Encode(v)
	if err != nil {
		return nil, err
	}
	read := new(T)
	_ = json.Unmarshal(old, read)
	known, err := jsonl.Encode(read)
	if err != nil {
		return nil, err
	}
	if now := value(text); keepUnknown(value(old), value(known), now) {
		text, err = jsonl.Encode(now)
	}
	return indent(text, err)
}

// value decodes a JSON text. Numbers keep their spelling.
func value(text []byte) (v any) {
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	_ = in.Decode(&v)
	return v
}

// keepUnknown adds the members of old that are not in known to now. It reports whether there were any.
func keepUnknown(old, known, now any) (added bool) {
	switch old := old.(type) {
	case map[string]any:
		known, _ := known.(map[string]any)
		now, _ := now.(map[string]any)
		for name, member := range old {
			was, isKnown := known[name]
			is, inNow := now[name]
			switch {
			case isKnown && inNow:
				added = keepUnknown(member, was, is) || added
			case !isKnown && !inNow && now != nil:
				now[name], added = member, true
			}
		}
	case []any:
		known, _ := known.([]any)
		now, _ := now.([]any)
		for i := range min(len(old), len(known), len(now)) {
			added = keepUnknown(old[i], known[i], now[i]) || added
		}
	}
	return added
}

// jsonError explains why data could not be decoded: the position of invalid JSON, or the value of a wrong type.
func jsonError(data []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return errors.New("is empty")
	case errors.As(err, &syntax):
		before := data[:min(int(syntax.Offset), len(data))]
		line := 1 + bytes.Count(before, []byte{'\n'})
		column := max(len(before)-1-bytes.LastIndexByte(before, '\n'), 1)
		what := strings.TrimPrefix(syntax.Error(), "json: ")
		return fmt.Errorf("is not JSON: line %d, column %d: %s", line, column, what)
	case errors.As(err, &kind):
		found, _, _ := strings.Cut(kind.Value, " ") // "number 1.5"
		return fmt.Errorf("is %s, want %s", jsonWord(found), jsonWord(kind.Type.Kind().String()))
	}
	return err
}

// jsonWord returns a kind of JSON value, from encoding/json's name of it or from the Go kind of its field.
func jsonWord(kind string) string {
	switch kind {
	case "bool":
		return "true or false"
	case "array", "slice":
		return "a list"
	case "object", "map", "struct", "ptr":
		return "an object"
	case "int", "int64":
		return "a whole number"
	case "float64":
		return "a number"
	}
	return "a " + kind // string, number
}

// indent returns how JSON files look on disk: two spaces, a newline at the end.
func indent(raw []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// readJSON decodes a JSON file of a session. Errors name the file and the fault in it.
func readJSON[T any](path string, decode func([]byte) (T, error)) (v T, err error) {
	data, err := jsonl.ReadFile(path)
	if err != nil {
		return v, err
	}
	if v, err = decode(data); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return v, err
}

// save replaces a JSON file of a session with v, synced, so that a power cut leaves the old content or the new. Only
// after Sync it is the new content.
func save[T any](path string, v *T) error {
	old, _ := jsonl.ReadFile(path)
	text, err := encode(v, old)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return jsonl.Put(path, text, true)
}

// Sync makes earlier saves survive a power cut.
func (s *Session) Sync() error { return jsonl.SyncDir(s.Dir) }

// removeStaleTemps deletes temporary files that a killed writer left in dir. Only the process with the lock calls it,
// so no other process writes most files. chat.html and taking.json are written without the lock, so their temporary
// files must be an hour old.
func removeStaleTemps(dir string, now time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, ".") || !strings.Contains(name, jsonl.TempMark) || !e.Type().IsRegular() {
			continue
		}
		if strings.HasPrefix(name, "."+ChatHTMLFile) || strings.HasPrefix(name, ".taking.json") {
			if info, err := e.Info(); err != nil || now.Sub(info.ModTime()) < time.Hour {
				continue
			}
		}
		os.Remove(filepath.Join(dir, name))
	}
}
