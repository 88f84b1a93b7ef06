package loop

import (
	"embed"

	"github.com/git-tilth/git-tilth/internal/text"
)

//go:embed prompts/*.md
var builtinPrompts embed.FS

// LoadPrompts reads the prompts of worker and evaluator. Files in dir replace the built-in ones; dir may be "".
func LoadPrompts(dir string) (*text.Prompts, error) { return text.LoadPrompts(builtinPrompts, dir) }
