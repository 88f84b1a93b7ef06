package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// checkCommand refuses the commands in the deny list.
func checkCommand(b *BuiltinTools, in *arguments) error {
	if reason := b.guard.check(in.text["command"]); reason != "" {
		return &blocked{reason}
	}
	return nil
}

func (b *BuiltinTools) bash(ctx context.Context, in arguments) (ToolAnswer, error) {
	command := in.text["command"]
	limit, err := b.limit(in)
	if err != nil {
		return ToolAnswer{}, err
	}
	switch {
	case strings.TrimSpace(command) == "":
		return ToolAnswer{}, errors.New("the command is empty")
	case strings.ContainsRune(command, 0):
		return ToolAnswer{}, errors.New("the command contains a NUL byte")
	}
	o, err := proc.Run(ctx, proc.Cmd{
		Argv:      []string{b.shell(), "-c", command},
		Dir:       b.dir,
		Env:       b.opts.Env,
		Box:       b.opts.Sandbox,
		Timeout:   limit,
		OutputCap: bashOutput,
		Clean:     b.opts.Clean,
	})
	switch {
	case errors.Is(err, proc.ErrDir):
		return ToolAnswer{}, errGone
	case err != nil:
		return ToolAnswer{}, err
	}
	return report(o, limit), nil
}

// limit returns the command's time limit.
func (b *BuiltinTools) limit(in arguments) (time.Duration, error) {
	secs, ok := in.num["timeout"]
	if !ok {
		return b.opts.BashTimeout, nil
	}
	if secs <= 0 {
		return 0, errors.New("the timeout must be more than 0 seconds")
	}
	if most := max(maxBashTimeout, b.opts.BashTimeout); secs >= most.Seconds() {
		return most, nil
	}
	return max(time.Duration(secs*float64(time.Second)), time.Millisecond), nil
}

func (b *BuiltinTools) shell() string {
	if _, err := proc.LookPath("bash", b.dir, b.opts.Env); err == nil {
		return "bash"
	}
	return "sh"
}

// report puts the command's exit status before its output, because readers of a shortened result see only the
// beginning.
func report(o proc.Outcome, limit time.Duration) ToolAnswer {
	var out strings.Builder
	switch {
	case o.TimedOut:
		fmt.Fprintf(&out, "[ended after the time limit of %s]\n", limit)
	case o.Canceled:
		out.WriteString("[interrupted]\n")
	case o.Signal != "":
		fmt.Fprintf(&out, "[exit code %d, ended by %s]\n", o.ExitCode, o.Signal)
	default:
		fmt.Fprintf(&out, "[exit code %d]\n", o.ExitCode)
	}
	if o.Ended && !o.TimedOut && !o.Canceled {
		out.WriteString("[processes that it left in the background were ended]\n")
	}
	if len(o.Output) == 0 {
		out.WriteString("(no output)")
	}
	out.Write(o.Output)
	return ToolAnswer{Output: out.String(), IsError: o.TimedOut || o.Canceled}
}
