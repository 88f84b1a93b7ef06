package agent

import (
	"context"
	"strings"

	"github.com/git-tilth/git-tilth/internal/tool/proc"
)

// outputKept is how much of each of a program's streams is kept. Events are read as they come, so that this only has
// to hold what a program says when it fails.
const outputKept = 64 << 10

// startChild runs a turn's command to its end.
func startChild(ctx context.Context, t *Turn, cmd *command, onLine func([]byte)) (result, error) {
	res, err := proc.Run(ctx, proc.Cmd{
		Argv: cmd.argv, Dir: t.Dir, Env: cmd.env, Stdin: strings.NewReader(cmd.stdin),
		Timeout: t.Timeout, Grace: grace, OutputCap: outputKept, OnLine: onLine, SeparateStderr: true,
	})
	if err != nil {
		return result{}, err
	}
	return result{exit: res.ExitCode, signal: res.Signal, timedOut: res.TimedOut, canceled: res.Canceled,
		stderr: string(res.Stderr), tail: string(res.Output)}, nil
}
