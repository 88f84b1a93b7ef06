package seed

import (
	"embed"

	"github.com/git-tilth/git-tilth/internal/prompt"
)

//go:embed prompts
var builtinPrompts embed.FS

// LoadPrompts reads the texts that the interview gives to the model, and what dir ("" for none) replaces of them.
func LoadPrompts(dir string) (*prompt.Set, error) { return prompt.Load(builtinPrompts, dir) }
