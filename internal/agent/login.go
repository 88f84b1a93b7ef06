package agent

import (
	"context"
	"os"
	"time"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// statusTime is how long a program may take to say whether somebody is logged in.
const statusTime = time.Minute

// LoggedOut reports whether the program, which lies at path, says that nobody is logged in. Its provider is not asked:
// a login that it has may still be refused.
func (p *Program) LoggedOut(ctx context.Context, path string, env []string) bool {
	if p.status == nil {
		return false
	}
	out, err := proc.Run(ctx, proc.Cmd{Argv: append([]string{path}, p.status...), Dir: os.TempDir(), Env: env,
		Timeout: statusTime, OutputCap: 4096})
	return err == nil && out.ExitCode != 0 && p.loggedOut().Match(out.Output)
}
