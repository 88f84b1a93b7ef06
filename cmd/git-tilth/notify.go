package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/text"
)

// notifyPatience is how long a notification may take.
const notifyPatience = 30 * time.Second

// notify tells the user of a run's end by tilth.notify. What goes wrong in it is said and changes nothing.
func (w *repoContext) notify(h *held.Handle, stop loop.Stop) {
	how := w.Config.Text("tilth.notify")
	if how == "" {
		return
	}
	tasks := h.S.Overview().Tasks
	said := fmt.Sprintf("%s: %d of %s done", stop.Reason, tasks.Done, text.Plural(tasks.Total, "task"))
	argv := []string{"sh", "-c", how}
	switch {
	case how == "bell":
		if isTerminal(w.p.stderr) {
			fmt.Fprint(w.p.stderr, "\a")
		}
		return
	case how == "desktop" && runtime.GOOS == "darwin":
		argv = []string{"osascript", "-e", fmt.Sprintf("display notification %q with title %q", said, "git tilth")}
	case how == "desktop":
		argv = []string{"notify-send", "git tilth", said}
	}
	env := append(slices.Clone(w.p.environ),
		"TILTH_NOTIFY_REASON="+stop.Reason, "TILTH_NOTIFY_SESSION="+h.S.ID,
		fmt.Sprintf("TILTH_NOTIFY_DONE=%d", tasks.Done),
		fmt.Sprintf("TILTH_NOTIFY_FAILED=%d", tasks.Failed),
		fmt.Sprintf("TILTH_NOTIFY_PENDING=%d", tasks.Pending),
		fmt.Sprintf("TILTH_NOTIFY_COST=%.4f", h.Checkpoint.Usage.Sum().Cost))
	// The run may have ended by a signal, which is worth telling too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.p.ctx), notifyPatience)
	defer cancel()
	out, err := proc.Run(ctx, proc.Cmd{Argv: argv, Dir: w.p.dir, Env: env, OutputCap: 4096})
	switch {
	case err != nil:
		w.p.warnf("git-tilth: tilth.notify: %s\n", text.VisibleLine(err.Error()))
	case out.ExitCode != 0:
		says := fmt.Sprintf("exit status %d: %s", out.ExitCode, text.FailingLine(string(out.Output)))
		w.p.warnf("git-tilth: tilth.notify: %s\n", text.VisibleLine(strings.TrimSuffix(says, ": ")))
	}
}
