package loop

import (
	"embed"

	"github.com/git-tilth/git-tilth/internal/prompt"
)

//go:embed prompts/*.md
var builtinPrompts embed.FS

// LoadPrompts reads the prompts of worker and evaluator, with replacements from dir ("" for none).
func LoadPrompts(dir string) (*prompt.Set, error) { return prompt.Load(builtinPrompts, dir) }
