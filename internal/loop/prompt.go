package loop

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed prompts/*.md
var builtinPrompts embed.FS

// Prompts are the texts that the models are given. Each is a file in prompts/; a file of the same name in
// the directory that tilth.prompts names replaces it. Files with fields are templates; all of them are parsed when
// they are loaded, so that a broken one is found before anything starts.
type Prompts struct{ t *template.Template }

// LoadPrompts reads the built-in prompts and what dir ("" for none) replaces of them.
func LoadPrompts(dir string) (*Prompts, error) {
	root := template.New("").Option("missingkey=error").Funcs(template.FuncMap{
		"inc":  func(i int) int { return i + 1 },
		"join": strings.Join,
	})
	names, err := fs.Glob(builtinPrompts, "prompts/*.md")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := builtinPrompts.ReadFile(name)
		if err != nil {
			return nil, err
		}
		base := filepath.Base(name)
		if dir != "" {
			own, err := os.ReadFile(filepath.Join(dir, base))
			if err == nil {
				text = own
			} else if !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("prompt %s: %w", base, err)
			}
		}
		if _, err := root.New(base).Parse(string(text)); err != nil {
			return nil, fmt.Errorf("prompt %s: %w", base, err)
		}
	}
	if dir != "" {
		if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
			return nil, fmt.Errorf("tilth.prompts: %s is not a directory", dir)
		}
	}
	return &Prompts{t: root}, nil
}

// Render fills in one prompt.
func (p *Prompts) Render(name string, data any) (string, error) {
	var b bytes.Buffer
	if err := p.t.ExecuteTemplate(&b, name+".md", data); err != nil {
		return "", fmt.Errorf("prompt %s: %w", name, err)
	}
	return strings.TrimSpace(b.String()) + "\n", nil
}
