package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

const (
	notifyPatience = 30 * time.Second // time limit of one notification
	signalPatience = 5 * time.Second  // time limit of all notifications after a signal
	briefOutage    = time.Minute      // shorter outages are not notified
)

// notifier runs tilth.notify at a run's end, and at the failures, limits and outages in tilth.notifyOn. It prints its
// errors and does not fail the run.
type notifier struct {
	w       *repoContext
	s       *session.Session
	on      []string // tilth.notifyOn; nil turns notifications off
	cost    float64  // of the session so far
	sent    map[string]bool
	outages map[string]time.Time // start of the outage of each endpoint or agent program
	waiting map[string]string    // by task and role, the endpoint or agent program it waits for
	pending sync.WaitGroup
	ctx     context.Context // of the commands: a run ended by a signal is notified too
	cancel  context.CancelFunc
	reason  string // of the stop
}

func (w *repoContext) newNotifier(s *session.Session) *notifier {
	n := &notifier{w: w, s: s, sent: map[string]bool{}, outages: map[string]time.Time{}, waiting: map[string]string{}}
	n.ctx, n.cancel = context.WithCancel(context.WithoutCancel(w.p.ctx))
	if check, err := s.Checkpoint(); err == nil {
		n.cost = check.Usage.Sum().Cost
	}
	if w.Config.Text("tilth.notify") != "" {
		n.on = strings.Split(w.Config.Text("tilth.notifyOn"), ",")
	}
	return n
}

// event notifies in the background. It is called for one event at a time.
func (n *notifier) event(l record.Line) {
	if n.on == nil {
		return
	}
	e := l.Event()
	of := e.Common().TaskID + "/" + e.Common().Phase
	switch e := e.(type) {
	case *record.ModelCall:
		if e.Cost != nil {
			n.cost += *e.Cost
		}
		if e.Health == model.HealthOK {
			delete(n.outages, n.waiting[of])
		}
	case *record.TaskFailed:
		n.once("failure", e.TaskID, e.Reason)
	case *record.AgentWaits:
		switch until := record.ParseTime(e.Until); {
		case e.Attempt == 0: // a wait reported by the program itself
		case e.Reason == record.UsageLimit:
			n.once("limit", e.Who+e.Until, e.Reason)
		default:
			if n.outages[e.Who].IsZero() {
				n.outages[e.Who] = record.ParseTime(l.TS)
			}
			n.waiting[of] = e.Who
			if began := n.outages[e.Who]; until.Sub(began) > briefOutage {
				n.once("outage", e.Who+began.String(), e.Reason)
			}
		}
	}
}

// once notifies in the background, unless tilth.notifyOn excludes the event or it was notified before.
func (n *notifier) once(kind, which, reason string) {
	if !slices.Contains(n.on, kind) || n.sent[kind+which] {
		return
	}
	n.sent[kind+which] = true
	cost := n.cost
	n.pending.Go(func() { n.notify(reason, cost) })
}

// stopped sets the reason of the run's stop.
func (n *notifier) stopped(reason string) { n.reason = reason }

// end notifies of a stop, after the notifications in the background.
func (n *notifier) end() {
	defer n.cancel()
	if n.reason == "" {
		return
	}
	if n.w.p.ctx.Err() != nil {
		defer time.AfterFunc(signalPatience, n.cancel).Stop()
	}
	n.pending.Wait()
	if check, err := n.s.Checkpoint(); err == nil && slices.Contains(n.on, "end") {
		n.notify(n.reason, check.Usage.Sum().Cost)
	}
}

func (n *notifier) notify(reason string, cost float64) {
	w := n.w
	plan, _ := n.s.Tasks()
	tasks := session.CountTasks(plan)
	said := fmt.Sprintf("%s: %d of %s done", reason, tasks.Done, text.Plural(tasks.Total, "task"))
	how := w.Config.Text("tilth.notify")
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
		"TILTH_NOTIFY_REASON="+reason, "TILTH_NOTIFY_SESSION="+n.s.ID,
		fmt.Sprintf("TILTH_NOTIFY_DONE=%d", tasks.Done),
		fmt.Sprintf("TILTH_NOTIFY_FAILED=%d", tasks.Failed),
		fmt.Sprintf("TILTH_NOTIFY_PENDING=%d", tasks.Pending),
		fmt.Sprintf("TILTH_NOTIFY_COST=%.4f", cost))
	ctx, cancel := context.WithTimeout(n.ctx, notifyPatience)
	defer cancel()
	out, err := proc.Run(ctx, proc.Cmd{Argv: argv, Dir: w.p.dir, Env: env, OutputCap: 4096})
	switch {
	case err != nil:
		w.p.warnf("git-tilth: tilth.notify: %s\n", text.VisibleLine(err.Error()))
	case ctx.Err() != nil:
		w.p.warnf("git-tilth: tilth.notify: it was ended because it took too long\n")
	case out.ExitCode != 0:
		says := fmt.Sprintf("exit status %d: %s", out.ExitCode, text.FailingLine(string(out.Output)))
		w.p.warnf("git-tilth: tilth.notify: %s\n", text.VisibleLine(strings.TrimSuffix(says, ": ")))
	}
}
