package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/text"
)

// The ways in which an agent resumes a conversation, as stored in a checkpoint.
const (
	ResumeByLoad   = "load"
	ResumeByResume = "resume"
	ResumeByNone   = "none"
)

// ACPInfo describes an agent before any conversation.
type ACPInfo struct {
	Name, Version string
	Resume        string   // ResumeByLoad, ResumeByResume or ResumeByNone
	Auth          []string // names of the login methods
	auth          []acpAuth
}

type acpAuth struct{ id, kind string }

// playACP plays one turn of an agent that speaks the Agent Client Protocol. Each turn has its own process.
func (s *stream) playACP(ctx context.Context, cmd proc.Cmd) (Outcome, error) {
	t := s.turn
	turn, cancel := s.stoppable(ctx)
	defer cancel(nil)
	s.onID = func(id string) {
		if s.tell(id) != nil {
			s.stop(Failed, "the conversation could not be recorded")
		}
	}
	if t.Timeout > 0 {
		why := "the turn took longer than " + t.Timeout.String()
		timer := time.AfterFunc(t.Timeout, func() { s.stop(TimedOut, why) })
		defer timer.Stop()
	}
	over := make(chan struct{}, 1)
	s.lingered = func() { over <- struct{}{} }
	c, shut := s.connect(ctx, cmd)
	go s.watchSilence(turn)
	end := c.play(turn, over)
	cut := s.isCut(end)
	res, err := shut()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ended(err); err != nil {
		return Outcome{}, err
	}
	out := c.outcome(end, res)
	out.Cut = cut
	return out, nil
}

// isCut reports whether an agent was ended while a subagent was running, after it had answered its prompt.
func (s *stream) isCut(end *ending) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reported && end.how != Completed
}

// play runs the turn.
func (c *acpConn) play(ctx context.Context, over <-chan struct{}) *ending {
	for _, step := range []func(context.Context) error{c.initialize, c.open, c.prompt} {
		if err := step(ctx); err != nil {
			return c.endOf(err)
		}
	}
	c.s.mu.Lock()
	end := c.ended()
	waits := end.how == Completed && c.phase == acpPrompted
	if waits {
		c.s.success = true
		c.s.settle(c.s.quietTime(), c.s.lingered)
	}
	c.s.mu.Unlock()
	if !waits {
		return end
	}
	select {
	case <-over:
	case <-c.gone:
	case <-ctx.Done():
		return c.endOf(context.Cause(ctx))
	}
	return end
}

// endOf returns the ending for an error.
func (c *acpConn) endOf(err error) *ending {
	if end, ok := errors.AsType[*ending](err); ok {
		return end
	}
	if refusal, ok := errors.AsType[*acpError](err); ok {
		how, reset := refusal.means()
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		c.s.reset = reset
		return &ending{how: how, why: refusal.Error(), hint: c.loginHint(refusal.code)}
	}
	if errors.Is(err, errACPGone) {
		return &ending{how: Failed, why: err.Error()}
	}
	return &ending{how: Interrupted, why: "interrupted"}
}

// loginHint returns the login command if the agent asks for a login.
func (c *acpConn) loginHint(code int64) string {
	if code != acpAuthRequired || c.s.program.Login != "" || len(c.info.Auth) == 0 {
		return ""
	}
	return "log in with the agent's own command; it names " + strings.Join(c.info.Auth, ", ")
}

// initialize exchanges names and capabilities with the agent.
func (c *acpConn) initialize(ctx context.Context) error {
	said, err := c.ask(ctx, "initialize", map[string]any{
		"protocolVersion": 1,
		"clientCapabilities": map[string]any{
			"fs": map[string]bool{"readTextFile": false, "writeTextFile": false}, "terminal": false,
		},
		"clientInfo": map[string]string{"name": "git-tilth", "version": ownVersion()},
	})
	if err != nil {
		return err
	}
	if v := said.Get("protocolVersion"); v.Type != gjson.Number || v.Num != 1 {
		return &ending{how: Refused, hint: "install a version of " + c.s.program.Name + " that supports it",
			why: "it does not speak version 1 of the Agent Client Protocol; it answers " +
				cmp.Or(text.HeadBytes(text.VisibleLine(v.Raw), 50), "none")}
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.info = acpInfo(said)
	return nil
}

func acpInfo(said gjson.Result) ACPInfo {
	clean := func(path string) string { return text.HeadBytes(text.VisibleLine(said.Get(path).Str), 100) }
	info := ACPInfo{Name: cmp.Or(clean("agentInfo.title"), clean("agentInfo.name")),
		Version: clean("agentInfo.version"), Resume: ResumeByNone}
	switch {
	case said.Get("agentCapabilities.loadSession").Bool():
		info.Resume = ResumeByLoad
	case said.Get("agentCapabilities.sessionCapabilities.resume").IsObject():
		info.Resume = ResumeByResume
	}
	for _, m := range objects(said.Get("authMethods")) {
		if id := m.Get("id").Str; id != "" && len(info.auth) < 20 {
			info.auth = append(info.auth, acpAuth{id, m.Get("type").Str})
			info.Auth = append(info.Auth, text.HeadBytes(text.VisibleLine(id), 100))
		}
	}
	return info
}

// ownVersion returns the version of this program.
func ownVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "dev"
}

// open resumes or starts a conversation, and sets its mode and model. It reports the id before it sets them.
func (c *acpConn) open(ctx context.Context) error {
	ref := c.s.turn.Conversation
	var said gjson.Result
	var err error
	if ref.Resume {
		said, err = c.load(ctx, ref.ID)
	} else {
		said, err = c.begin(ctx)
	}
	if err != nil {
		return err
	}
	c.s.mu.Lock()
	c.s.id(c.session)
	named, refused := c.s.conversation == c.session, c.s.refusal
	c.s.mu.Unlock()
	switch {
	case refused != nil:
		return &ending{how: Failed, why: "the conversation could not be recorded"}
	case !named:
		return &ending{how: Failed, why: "the id of its conversation cannot be stored"}
	}
	return c.configure(ctx, said)
}

// load resumes a conversation. Any error means that the conversation is lost.
func (c *acpConn) load(ctx context.Context, id string) (gjson.Result, error) {
	lost := func(why string) error { return &ending{how: NotFound, why: why} }
	if c.info.Resume == ResumeByNone {
		return gjson.Result{}, lost("it cannot resume a conversation")
	}
	c.s.mu.Lock()
	c.session, c.phase = id, acpReplaying
	c.s.mu.Unlock()
	said, err := c.ask(ctx, "session/"+c.info.Resume, c.where("sessionId", id))
	refusal, isRefusal := errors.AsType[*acpError](err)
	switch {
	case ctx.Err() != nil:
		return said, context.Cause(ctx)
	case isRefusal && refusal.code == acpAuthRequired:
		return said, err
	case err != nil:
		return said, lost(err.Error())
	case c.info.Resume != ResumeByLoad:
		return said, nil
	}
	if err := c.replay(ctx); err != nil {
		return said, err
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.heardUser == 0 {
		return said, lost("it resumed the conversation without its history")
	}
	return said, nil
}

const (
	replayQuiet = 500 * time.Millisecond
	replayTime  = 10 * time.Second
)

// replay waits for the end of a load's replay. Some agents replay after they have answered the load, so only silence
// shows the end.
func (c *acpConn) replay(ctx context.Context) error {
	c.s.mu.Lock()
	whole := c.heardUser > 0 && c.heardBack
	c.s.mu.Unlock()
	for until := time.Now().Add(replayTime); !whole && time.Now().Before(until); {
		c.s.mu.Lock()
		left := replayQuiet - time.Since(c.s.lastOutput)
		c.s.mu.Unlock()
		if left <= 0 {
			break
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(left):
		}
	}
	return nil
}

// begin starts a conversation. It first logs in if the user configured that.
func (c *acpConn) begin(ctx context.Context) (gjson.Result, error) {
	said, err := c.ask(ctx, "session/new", c.where("", ""))
	refusal, isRefusal := errors.AsType[*acpError](err)
	if isRefusal && refusal.code == acpAuthRequired && c.row.auth != "" {
		if err := c.authenticate(ctx); err != nil {
			return said, err
		}
		said, err = c.ask(ctx, "session/new", c.where("", ""))
	}
	if err != nil {
		return said, err
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.session = said.Get("sessionId").Str; c.session == "" {
		return said, &ending{how: Failed, why: "it began a conversation without an id"}
	}
	return said, nil
}

// where returns the parameters for opening a conversation.
func (c *acpConn) where(name, id string) map[string]any {
	params := map[string]any{"cwd": c.dir, "mcpServers": []any{}}
	if name != "" {
		params[name] = id
	}
	return params
}

// authenticate uses the method that the settings name if it needs no person.
func (c *acpConn) authenticate(ctx context.Context) error {
	key := "tilth.agent." + c.s.program.Name + ".auth"
	for _, m := range c.info.auth {
		if m.id != c.row.auth {
			continue
		}
		if m.kind == "terminal" {
			return &ending{how: Refused, why: m.id + " needs a terminal", hint: "log in with the agent's own command"}
		}
		_, err := c.ask(ctx, "authenticate", map[string]any{"methodId": m.id})
		return err
	}
	return &ending{how: Refused, hint: oneOf(key, c.info.Auth),
		why: fmt.Sprintf("%s: it has no %q, only %s", key, c.row.auth, listed(c.info.Auth))}
}

// listed joins names for display.
func listed(names []string) string {
	if len(names) > 20 {
		names = append(names[:20:20], "...")
	}
	return cmp.Or(text.VisibleLine(strings.Join(names, ", ")), "nothing")
}

// prompt sends the turn's prompt and waits for its answer.
func (c *acpConn) prompt(ctx context.Context) error {
	t := c.s.turn
	c.s.mu.Lock()
	c.phase, c.s.lastOutput, c.message, c.usage.unanswered = acpPrompted, time.Now(), acpMessage{}, true
	c.s.mu.Unlock()
	answer := c.request("session/prompt", map[string]any{"sessionId": c.session,
		"prompt": []any{map[string]string{"type": "text", "text": c.s.program.prompt(t)}}})
	said, err := c.await(ctx, answer)
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return c.cancel(ctx, answer)
	}
	if !errors.Is(err, errACPGone) {
		c.took(said, err)
	}
	return err
}

// took handles the answer to the prompt, with its usage.
func (c *acpConn) took(said gjson.Result, err error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.usage.unanswered = false
	if err == nil {
		c.usage.answer(said)
		c.message.stop = text.HeadBytes(text.VisibleLine(said.Get("stopReason").Str), 100)
	}
}

// cancel asks the agent once to end the turn, and reads its remaining messages. git-tilth has ended the turn.
func (c *acpConn) cancel(ctx context.Context, answer <-chan gjson.Result) error {
	c.s.mu.Lock()
	c.phase = acpCancelling
	c.s.mu.Unlock()
	c.send(map[string]any{"jsonrpc": "2.0", "method": "session/cancel",
		"params": map[string]any{"sessionId": c.session}})
	select {
	case e := <-answer:
		c.took(result(e))
	case <-c.gone:
	case <-time.After(acpCancel):
	case <-proc.SecondSignal(ctx):
	}
	return context.Cause(ctx)
}
