package held

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/packages"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// setupTimeout is the time that one setup command may take: it may install all of a project's dependencies.
const setupTimeout = 30 * time.Minute

// setupOutput limits the output of a setup command, in bytes.
const setupOutput = 64 << 10

// SetupError is a failed setup command with its output.
type SetupError struct {
	Command string
	How     string // "exit code 1", "time limit of 30m0s", ...
	Output  string
}

func (e *SetupError) Error() string {
	msg := fmt.Sprintf("setup command %q ended with %s", e.Command, e.How)
	if out := strings.TrimSpace(e.Output); out != "" {
		msg += ":\n" + out
	}
	return msg
}

// RunCommands runs the commands of tilth.setup with sh in a new worktree, in order, until one fails. The error is a
// *SetupError, or the context's.
func RunCommands(ctx context.Context, commands []string, in validator.ExecEnv) error {
	for _, command := range commands {
		o, err := proc.Run(ctx, proc.Cmd{
			Argv: []string{"sh", "-c", command}, Dir: in.Dir, Env: packages.Environment(in.Env, nil), Box: in.Box,
			Timeout: setupTimeout, OutputCap: setupOutput,
		})
		fail := &SetupError{Command: command, Output: strings.ToValidUTF8(string(o.Output), "\uFFFD")}
		switch {
		case err != nil:
			return fmt.Errorf("setup command %q: %w", command, err)
		case o.Canceled:
			return ctx.Err()
		case o.TimedOut:
			fail.How = fmt.Sprintf("the time limit of %s", setupTimeout)
		case o.Signal != "":
			fail.How = o.Signal
		case o.ExitCode != 0:
			fail.How = fmt.Sprintf("exit code %d", o.ExitCode)
		default:
			continue
		}
		return fail
	}
	return nil
}
