package agent

import (
	"github.com/git-tilth/git-tilth/internal/pattern"
)

// table holds the rows in the order in which programs are looked for.
var table = []func() *Program{claude, codex, gemini, opencode}

// Programs returns all rows, in the order in which programs are looked for. The rows are fresh copies.
func Programs() []*Program {
	out := make([]*Program, len(table))
	for i, row := range table {
		out[i] = row()
	}
	return out
}

// ByName returns the row with this name.
func ByName(name string) (*Program, bool) {
	for _, p := range Programs() {
		if p.Name == name {
			return p, true
		}
	}
	return nil, false
}

// Find returns the programs that lookPath finds, in table order, with Binary set to where they are.
func Find(lookPath func(string) (string, error)) []*Program {
	var out []*Program
	for _, p := range Programs() {
		if path, err := lookPath(p.Binary); err == nil && path != "" {
			p.Binary = path
			out = append(out, p)
		}
	}
	return out
}

var uuidForm = pattern.New(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)
