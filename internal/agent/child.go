package agent

import (
	"context"
	"strings"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// outputKept is how much of a program's output, and of its standard error, is kept beside what is read as it comes.
const outputKept = 64 << 10

// startChild runs a turn's command to its end. onOut gets each line of standard output, onErr each line of standard
// error; they are called from different goroutines. Some programs say only on standard error which conversation they
// began, or that they will now wait for hours.
func startChild(ctx context.Context, t *Turn, cmd *command, onOut, onErr func([]byte)) (result, error) {
	res, err := proc.Run(ctx, proc.Cmd{
		Argv: cmd.argv, Dir: cmd.dir, Env: cmd.env, Stdin: strings.NewReader(cmd.stdin),
		Timeout: t.Timeout, Grace: grace, OutputCap: outputKept, OnLine: onOut, OnErrLine: onErr,
	})
	return result{
		exit: res.ExitCode, signal: res.Signal, timedOut: res.TimedOut, canceled: res.Canceled,
		stderr: strings.TrimSpace(string(res.Stderr)),
	}, err
}
