package fleet

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/session"
)

// FuzzForeign: a claim that came from elsewhere is that of the session that was asked for, and no name of a file leads
// out of the session's directory or to a file that runs something.
func FuzzForeign(f *testing.F) {
	const id = "20260101-000000-abcdef"
	f.Add(`{"session":"`+id+`","holder":"x","expires":7,"state":"0000000000000000000000000000000000000000",`+
		`"tip":"0000000000000000000000000000000000000000"}`, "ledger/T-001.jsonl")
	f.Add(`{"session":"`+id+`","expires":"9999-99-99T99:99:99Z","tasks":{"done":1e99}}`, "../events.jsonl")
	f.Add(`null`, "ledger/../undo/1/undo.json")
	f.Fuzz(func(t *testing.T, message, name string) {
		if c, ok := parseClaim(id, message); ok {
			c.Held(time.Now())
			if err := (&ClaimedError{c}); c.Session != id || strings.ContainsAny(err.Error(), "\x1b\n\r") {
				t.Errorf("%+v: %s", c, err)
			}
		}
		if !travels(name) {
			return
		}
		inside := filepath.IsLocal(name) && filepath.Clean(name) == name && strings.Count(name, "/") < 2
		if !inside || strings.HasPrefix(name, session.WorkspaceDir) || strings.ContainsAny(name, "\x00\n\\") {
			t.Errorf("%q would travel", name)
		}
	})
}
