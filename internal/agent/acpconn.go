package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

const (
	maxACPLine   = 64 << 20 // size of a message in bytes; a longer one ends the turn
	maxACPQueue  = 64 << 20 // bytes queued for an agent that does not read them
	maxACPID     = 1024     // length of a tool call's id in bytes
	acpHandshake = time.Minute
	acpCancel    = 3 * time.Second // wait for the answer to a cancelled prompt
	acpStep      = time.Second     // between closing the input, SIGTERM and SIGKILL
)

// acpConn is the client's end of the Agent Client Protocol, version 1: JSON-RPC by lines. It handles an agent's lines
// one after another, so that no message overtakes an earlier one.
type acpConn struct {
	s       *stream // its mutex guards the fields below except out and gone
	row     *acpRow
	out     *outbox
	gone    chan struct{} // closed when the process and all its children have ended
	dir     string        // working directory of the conversation
	places  []string      // directories in which a turn may edit
	asked   int64         // number of requests made
	waiting map[int64]chan gjson.Result
	skipped int // ignored lines, notifications and updates

	info      ACPInfo
	session   string
	phase     acpPhase
	heardUser int  // user messages that a load replayed
	heardBack bool // the last of them was answered
	refused   int  // number of refused permissions
	tools     map[string]*acpTool
	replayed  map[string]bool // tool calls of earlier turns
	message   acpMessage
	usage     acpUsage
	lie       bool // the agent reported success although its API refused the request
}

// acpPhase is the phase to which updates belong.
type acpPhase int

const (
	acpOpening    acpPhase = iota // no conversation yet
	acpReplaying                  // replays a loaded conversation
	acpPrompted                   // works on the turn
	acpCancelling                 // the turn is being cancelled
	acpAnswered                   // the answer to the prompt has ended the turn
	acpOver
)

var errACPGone = errors.New("it ended before it answered")

// connect starts the agent. The caller must call shut.
func (s *stream) connect(ctx context.Context, cmd proc.Cmd) (c *acpConn, shut func() (proc.Outcome, error)) {
	c = &acpConn{s: s, row: s.program.acp, out: newOutbox(), gone: make(chan struct{}), dir: proc.RealPath(cmd.Dir),
		waiting: map[int64]chan gjson.Result{}, tools: map[string]*acpTool{}, replayed: map[string]bool{}}
	c.places = []string{proc.RealPath(s.turn.Dir)}
	if temp := proc.Getenv(cmd.Box.Environ(cmd.Env), "TMPDIR"); temp != "" {
		c.places = append(c.places, proc.RealPath(temp))
	}
	cmd.Stdin, cmd.MaxLine, cmd.Grace, cmd.OutputCap = c.out, maxACPLine+1, acpStep, outputKept
	cmd.OnLine, cmd.OnErrLine = c.line, func([]byte) {}
	life, kill := context.WithCancel(context.WithoutCancel(ctx))
	var res proc.Outcome
	var err error
	go func() {
		defer close(c.gone)
		res, err = proc.Run(life, cmd)
		res.Stderr = []byte(s.turn.Redact.String(string(res.Stderr)))
	}()
	return c, func() (proc.Outcome, error) {
		s.mu.Lock()
		c.phase = acpOver
		s.mu.Unlock()
		c.out.Close()
		select {
		case <-c.gone:
		case <-time.After(acpStep):
		case <-proc.SecondSignal(ctx):
		}
		kill()
		<-c.gone
		return res, err
	}
}

// ask makes a request and waits for its answer, within the time limit of a handshake.
func (c *acpConn) ask(ctx context.Context, method string, params any) (gjson.Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, acpHandshake, &ending{how: Failed,
		why: fmt.Sprintf("it did not answer %s within %s", method, acpHandshake)})
	defer cancel()
	return c.await(ctx, c.request(method, params))
}

// await waits for the answer to a request. A refusal is an *acpError.
func (c *acpConn) await(ctx context.Context, answer <-chan gjson.Result) (gjson.Result, error) {
	select {
	case e := <-answer:
		return result(e)
	case <-ctx.Done():
		return gjson.Result{}, context.Cause(ctx)
	case <-c.gone:
	}
	select {
	case e := <-answer: // the last words of the agent
		return result(e)
	default:
		return gjson.Result{}, errACPGone
	}
}

func result(e gjson.Result) (gjson.Result, error) {
	if failed := e.Get("error"); failed.Exists() && failed.Type != gjson.Null {
		return gjson.Result{}, newACPError(failed)
	}
	return e.Get("result"), nil
}

// request sends a request; the answer arrives in the channel.
func (c *acpConn) request(method string, params any) <-chan gjson.Result {
	c.s.mu.Lock()
	c.asked++
	id, answer := c.asked, make(chan gjson.Result, 1)
	c.waiting[id] = answer
	c.s.mu.Unlock()
	c.send(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	return answer
}

// answer answers a request from the agent.
func (c *acpConn) answer(id, member string, value any) {
	c.send(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), member: value})
}

func (c *acpConn) send(message any) {
	line, err := json.Marshal(message)
	if err != nil || !c.out.send(append(line, '\n')) {
		c.s.stop(Failed, "it does not read its input")
	}
}

// line handles a line of standard output.
func (c *acpConn) line(line []byte) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.phase == acpOver {
		return
	}
	c.s.lastOutput, c.s.quiet, c.s.waits = time.Now(), false, ""
	if len(line) > maxACPLine {
		c.s.stop(Failed, fmt.Sprintf("it printed a line longer than %d MiB", maxACPLine>>20))
		return
	}
	e, ok := event(c.s.turn.Redact.Line(line))
	if !ok {
		c.skipped++
		return
	}
	id, method, params := e.Get("id"), e.Get("method"), e.Get("params")
	asks := id.Type == gjson.Number || id.Type == gjson.String
	switch {
	case method.Type == gjson.String && asks:
		c.asksUs(id.Raw, method.Str, params)
	case method.Str == "session/update" && c.ours(params):
		c.update(params.Get("update"))
		c.s.settle(c.s.quietTime(), c.s.lingered)
	case id.Type == gjson.Number && (e.Get("result").Exists() || e.Get("error").Exists()):
		c.answered(id.Int(), e)
	default:
		c.skipped++
	}
}

// answered passes an answer to the waiting request.
func (c *acpConn) answered(id int64, e gjson.Result) {
	answer, known := c.waiting[id]
	if !known {
		c.skipped++
		return
	}
	delete(c.waiting, id)
	if c.phase == acpPrompted && len(c.s.under) == 0 {
		c.phase = acpAnswered
	}
	if c.session == "" { // the next messages belong to the conversation of this answer
		c.session = e.Get("result.sessionId").Str
	}
	answer <- e
}

// ours reports whether a message belongs to this turn's conversation.
func (c *acpConn) ours(params gjson.Result) bool {
	return params.IsObject() && c.session != "" && params.Get("sessionId").Str == c.session
}

// asksUs answers a request from the agent. It declines files and terminals, because the agent works by itself in the
// sandbox.
func (c *acpConn) asksUs(id, method string, params gjson.Result) {
	if method != "session/request_permission" {
		c.skipped++
		// A tool sent the request, and some tools send no updates.
		if strings.HasPrefix(method, "fs/") || strings.HasPrefix(method, "terminal/") {
			c.s.toolBegan()
			c.s.toolEnded()
		}
		c.answer(id, "error", map[string]any{"code": -32601, "message": "Method not found"})
		return
	}
	outcome := map[string]any{"outcome": "cancelled"}
	if c.ours(params) && c.phase == acpPrompted {
		if option := c.permit(params); option != "" {
			outcome = map[string]any{"outcome": "selected", "optionId": option}
		}
	} else {
		c.skipped++
	}
	c.answer(id, "result", map[string]any{"outcome": outcome})
}

// permit answers a permission request without asking the user. It returns the chosen option.
func (c *acpConn) permit(params gjson.Result) (option string) {
	known := len(c.tools)
	t := c.tool(params.Get("toolCall"))
	if c.s.pastTurns() {
		return ""
	}
	if t != nil && len(c.tools) > known {
		t.unseen = true // a message may never report its end
		c.s.running--
	}
	var why string
	switch {
	case t == nil:
		why = "the request names no tool call"
	case c.s.turn.ReadOnly && t.kind != "read" && t.kind != "search":
		why = "only reading is allowed here"
	case !c.s.turn.ReadOnly && t.edits():
		if at := c.outside(t); at != "" {
			why = at + " is outside the worktree"
		}
	}
	options := objects(params.Get("options"))
	chosen := optionOf(options, "allow_once", "allow_always")
	if why == "" && chosen == "" {
		why = "it offers no way to allow it"
	}
	if t != nil {
		c.announce(t)
	}
	if why == "" {
		return chosen
	}
	name := "tool"
	if t != nil {
		name = t.name()
	}
	c.refused++
	c.s.deny(name)
	c.s.emit(&record.PreToolBlock{Tool: name, Reason: text.HeadBytes(text.VisibleLine(why), 300)})
	return optionOf(options, "reject_once", "reject_always")
}

// optionOf returns the first option of the first of these kinds. allow_always comes last, because it may write a rule
// into the tree or into the user's settings.
func optionOf(options []gjson.Result, kinds ...string) string {
	for _, kind := range kinds {
		i := slices.IndexFunc(options, func(o gjson.Result) bool {
			return o.Get("kind").Str == kind && o.Get("optionId").Type == gjson.String
		})
		if i >= 0 {
			return options[i].Get("optionId").Str
		}
	}
	return ""
}

// outbox is the queue of messages to an agent. Adding a message does not wait for a slow agent.
type outbox struct {
	mu     sync.Mutex
	more   *sync.Cond
	queue  []byte
	closed bool
}

func newOutbox() *outbox {
	o := &outbox{}
	o.more = sync.NewCond(&o.mu)
	return o
}

// send reports whether the queue had room.
func (o *outbox) send(line []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) > maxACPQueue {
		return false
	}
	if !o.closed {
		o.queue = append(o.queue, line...)
		o.more.Signal()
	}
	return true
}

func (o *outbox) Read(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) == 0 && !o.closed {
		o.more.Wait()
	}
	if len(o.queue) == 0 {
		return 0, io.EOF
	}
	n := copy(p, o.queue)
	o.queue = o.queue[n:]
	return n, nil
}

// Close ends the outbox once the agent has read all messages.
func (o *outbox) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.more.Signal()
}
