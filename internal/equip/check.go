package equip

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// What a check came to.
const (
	Well    = "ok"
	Note    = "note" // worth knowing, and as it is set
	Finding = "finding"
	Mended  = "mended"
)

// Check is one thing that was looked at.
type Check struct {
	Name    string   `json:"name"`
	Also    []string `json:"also,omitempty"` // roles of which it is true as well
	Session string   `json:"session,omitempty"`
	Status  string   `json:"status"`
	Detail  string   `json:"detail"`
	Command string   `json:"command,omitempty"` // what mends a finding
	Safe    bool     `json:"safe,omitempty"`    // --fix mends it
	// Mend does what Command does, where that is safe.
	Mend func(context.Context) error `json:"-"`
}

// NoCommand is what to look at where no command is known that mends a finding.
const NoCommand = "git tilth config"

// ready asks those who work and judge for a sign of life, as doctor does. No model is asked anything.
func (k *Kit) ready(context.Context) (checks []record.PreflightCheck) {
	answers, said := map[string]Check{}, map[string]bool{}
	for _, role := range []config.Role{config.Worker, config.Evaluator} {
		c := k.CheckRole(role, answers)
		if c.Status != Finding || said[c.Detail] {
			continue
		}
		said[c.Detail] = true
		mend := ""
		if IsCommand(c.Command) && c.Command != NoCommand {
			mend = c.Command
		}
		checks = append(checks, record.PreflightCheck{Name: string(role), From: "tilth." + string(role),
			Problem: c.Detail, Mend: mend})
	}
	return checks
}

// IsCommand reports whether a hint is a line for the shell, and not a word for the person.
func IsCommand(hint string) bool {
	first, _, _ := strings.Cut(hint, " ")
	return slices.Contains([]string{"git", "claude", "export", "echo", "${EDITOR:-vi}", "rustup", "pyenv", "rbenv",
		"nodenv", "goenv", "mise", "asdf", "volta"}, first)
}

// AnyRoot is the command after which sessions are kept where anybody can write.
func AnyRoot() string {
	return "export TILTH_SESSIONS_DIR=" + text.ShellQuote(filepath.Join(os.TempDir(), "tilth-sessions"))
}
