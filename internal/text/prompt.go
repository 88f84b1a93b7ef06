package text

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

// Prompts are the built-in prompts of models, or the user's replacements. Each is a template in a file. LoadPrompts
// parses all of them, so that a broken one is found before anything starts.
type Prompts struct {
	t   *template.Template
	sum hash.Hash
}

// LoadPrompts reads the files prompts/*.md of builtin. A file of the same name in dir, the directory of tilth.prompts
// or "", replaces one.
func LoadPrompts(builtin fs.FS, dir string) (*Prompts, error) {
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
		text, err := readPrompt(builtin, name, dir)
		if err == nil {
			fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
			_, err = root.New(path.Base(name)).Parse(string(text))
		}
		if err != nil {
			return nil, fmt.Errorf("prompt %s: %w", path.Base(name), err)
		}
	}
	return &Prompts{t: root, sum: sum}, nil
}

// Sum returns a hash of the contents: 16 hex digits.
func (s *Prompts) Sum() string { return fmt.Sprintf("%x", s.sum.Sum(nil)[:8]) }

func readPrompt(builtin fs.FS, name, dir string) ([]byte, error) {
	if dir != "" {
		own, err := os.ReadFile(filepath.Join(dir, path.Base(name)))
		if !errors.Is(err, fs.ErrNotExist) {
			return own, err
		}
	}
	return fs.ReadFile(builtin, name)
}

// Render fills in one prompt.
func (s *Prompts) Render(name string, data any) (string, error) {
	var b bytes.Buffer
	if err := s.t.ExecuteTemplate(&b, name+".md", data); err != nil {
		return "", fmt.Errorf("prompt %s: %w", name, err)
	}
	return strings.TrimSpace(b.String()) + "\n", nil
}
