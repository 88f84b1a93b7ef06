package seed

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed prompts/*.md
var builtinPrompts embed.FS

// prompts are the texts that the interview gives to the model. A file of the
// same name in the user's prompt directory replaces one.
type prompts struct{ t *template.Template }

// CheckPrompts loads the interview's prompts, those in dir ("" for none) before
// the built-in ones, so that a broken one is found before anything starts.
func CheckPrompts(dir string) error {
	_, err := loadPrompts(dir)
	return err
}

func loadPrompts(dir string) (*prompts, error) {
	names, err := fs.Glob(builtinPrompts, "prompts/*.md")
	if err != nil {
		return nil, err
	}
	root := template.New("").Option("missingkey=error")
	for _, name := range names {
		text, err := promptText(dir, name)
		if err != nil {
			return nil, err
		}
		if _, err := root.New(path.Base(name)).Parse(text); err != nil {
			return nil, fmt.Errorf("prompt %s: %w", path.Base(name), err)
		}
	}
	return &prompts{t: root}, nil
}

func promptText(dir, name string) (string, error) {
	if dir != "" {
		own, err := os.ReadFile(filepath.Join(dir, path.Base(name)))
		if err == nil {
			return string(own), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("prompt %s: %w", path.Base(name), plainError(err))
		}
	}
	text, err := builtinPrompts.ReadFile(name)
	return string(text), err
}

func (p *prompts) render(name string, data any) (string, error) {
	var b bytes.Buffer
	if err := p.t.ExecuteTemplate(&b, name+".md", data); err != nil {
		return "", fmt.Errorf("prompt %s: %w", name, err)
	}
	return strings.TrimSpace(b.String()) + "\n", nil
}
