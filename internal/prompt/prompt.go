// Package prompt holds the texts that models are given: built in, and replaced by the user's own.
package prompt

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"
)

// Set is a set of prompts. Each is a template in a file; all of them are parsed when they are loaded, so that a broken
// one is found before anything starts.
type Set struct {
	t   *template.Template
	sum hash.Hash
}

// Load reads the files prompts/*.md of builtin. A file of the same name in dir, the directory that tilth.prompts names
// ("" for none), replaces one.
func Load(builtin fs.FS, dir string) (*Set, error) {
	if dir != "" {
		if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
			return nil, fmt.Errorf("tilth.prompts: %s is not a directory", dir)
		}
	}
	names, err := fs.Glob(builtin, "prompts/*.md")
	if err != nil {
		return nil, err
	}
	root := template.New("").Option("missingkey=error").Funcs(template.FuncMap{
		"inc":  func(i int) int { return i + 1 },
		"join": strings.Join,
	})
	sum := sha256.New()
	for _, name := range names {
		text, err := read(builtin, name, dir)
		if err == nil {
			fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
			_, err = root.New(path.Base(name)).Parse(string(text))
		}
		if err != nil {
			return nil, fmt.Errorf("prompt %s: %w", path.Base(name), err)
		}
	}
	return &Set{t: root, sum: sum}, nil
}

// Sum names the set by what is in it: 16 hex digits.
func (s *Set) Sum() string { return fmt.Sprintf("%x", s.sum.Sum(nil)[:8]) }

func read(builtin fs.FS, name, dir string) ([]byte, error) {
	if dir != "" {
		own, err := os.ReadFile(filepath.Join(dir, path.Base(name)))
		if !errors.Is(err, fs.ErrNotExist) {
			return own, err
		}
	}
	return fs.ReadFile(builtin, name)
}

// Render fills in one prompt.
func (s *Set) Render(name string, data any) (string, error) {
	var b bytes.Buffer
	if err := s.t.ExecuteTemplate(&b, name+".md", data); err != nil {
		return "", fmt.Errorf("prompt %s: %w", name, err)
	}
	return strings.TrimSpace(b.String()) + "\n", nil
}
