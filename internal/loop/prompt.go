package loop

import (
	"embed"

	"github.com/git-tilth/git-tilth/internal/prompt"
)

//go:embed prompts/*.md
var builtinPrompts embed.FS

// LoadPrompts reads the texts that worker and evaluator are given, and what dir ("" for none) replaces of them.
func LoadPrompts(dir string) (*prompt.Set, error) { return prompt.Load(builtinPrompts, dir) }
