package loop

import (
	"embed"

	"github.com/git-tilth/git-tilth/internal/text"
)

//go:embed prompts/*.md
var builtinPrompts embed.FS

// LoadPrompts reads the prompts of worker and evaluator, with replacements from dir ("" for none).
func LoadPrompts(dir string) (*text.Prompts, error) { return text.LoadPrompts(builtinPrompts, dir) }
