package agent

import (
	"context"
	"os"
	"time"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// statusTime is the time limit for a program's login status.
const statusTime = time.Minute

// LoggedOut reports whether the program at path says that it is logged out. It does not ask the provider, which may
// still refuse the login.
func (p *Program) LoggedOut(ctx context.Context, path string, env []string) bool {
	if p.status == nil {
		return false
	}
	out, err := proc.Run(ctx, proc.Cmd{Argv: append([]string{path}, p.status...), Dir: os.TempDir(), Env: env,
		Timeout: statusTime, OutputCap: 4096})
	return err == nil && out.ExitCode != 0 && p.loggedOut().Match(out.Output)
}
