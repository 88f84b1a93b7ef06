package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// A struct of a session's JSON file that has others keeps the members it has no field for: it is read by decode and
// written by encode.

// extra are the members of a JSON object that its struct has no field for, as they were read.
type extra map[string]json.RawMessage

// checkObject returns why data is not a JSON object.
func checkObject(data []byte) error {
	if string(bytes.TrimSpace(data)) == "null" {
		return errors.New("is null, want an object")
	}
	if err := json.Unmarshal(data, &struct{}{}); err != nil {
		return jsonError(data, err)
	}
	return nil
}

// decode fills the struct that dst points to, and others with the unknown members. The error is that of the first
// member that does not fit its field, except for members in loose. All other fields are filled in any case.
func decode(data []byte, dst any, others *extra, loose ...string) (err error) {
	if err := checkObject(data); err != nil {
		return err
	}
	*others = extra{}
	jsonl.ReadObject(data, dst, func(name string, _ reflect.Value, value string, why error) {
		if err == nil && !slices.Contains(loose, name) {
			err = fmt.Errorf("%q %w", name, jsonError([]byte(value), why))
		}
	}, func(name, value string) { (*others)[strings.ToValidUTF8(name, "\uFFFD")] = json.RawMessage(value) })
	return err
}

// encode is the JSON of the struct that src points to, and behind its members the others, sorted by name.
func encode(src any, others extra) ([]byte, error) {
	var b bytes.Buffer
	err := jsonl.AppendObject(&b, src, false, others)
	return b.Bytes(), err
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

// indent is how JSON files look on disk: two spaces, a newline at the end.
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

// save replaces a file of a session with text, unless encoding it failed with err. Files that cannot be regenerated are
// synced, so that a power cut leaves the old content or the new. Only after Sync it is the new content.
func save(path string, text []byte, err error, synced bool) error {
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return jsonl.Put(path, text, synced)
}

// Sync makes earlier saves survive a power cut.
func (s *Session) Sync() error { return jsonl.SyncDir(s.Dir) }

// removeStaleTemps deletes temporary files that a killed writer left in dir. Only the lock's holder calls it, so files
// of the holder are leftovers at any age. chat.html and taking.json have other writers, so their temporary files must
// be old.
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
