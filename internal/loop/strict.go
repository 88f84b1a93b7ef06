package loop

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/model"
)

// Caps that hold to the call: before each attempt at a model call the most that the call can take is added to what the
// session has used, and a call that could pass a cap is not made. An answer is as long as the request allows, a prompt
// has no more tokens than bytes. Of a prompt that goes on where an earlier one ended, the endpoint's own count of that
// one stands for its bytes.

// promptSlack is what an endpoint may add to a prompt: the frame of its messages, its words about tools.
const promptSlack = 1024

// spent is a number of tokens, and dollars.
type spent struct {
	tokens int64
	cost   float64
}

// exchange is how far a conversation had come when its endpoint last counted the prompt.
type exchange struct {
	messages      int
	bytes, tokens int64
	reserved      *spent // the most that the call under way can take; nil for none
}

func bytesOf(req model.Request) int64 {
	n := int64(len(req.Tools))
	for _, m := range req.Messages {
		n += int64(len(m))
	}
	return n
}

// most is what one attempt at a request can take.
func (c caller) most(req model.Request) spent {
	prompt := bytesOf(req) + promptSlack
	if s := c.said; s.tokens > 0 && len(req.Messages) > s.messages && bytesOf(req) > s.bytes {
		prompt = s.tokens + bytesOf(req) - s.bytes
	}
	out := spent{tokens: prompt + req.MaxTokens}
	if c.who.Price != nil {
		out.cost = c.who.Price.Of(prompt, req.MaxTokens)
	}
	return out
}

// bound makes a request one that keeps to the caps, where they hold to the call.
func (c caller) bound(req *model.Request, calls *agent.Calls) {
	if c.who.MaxAnswer == 0 {
		return
	}
	req.MaxTokens = c.who.MaxAnswer
	most := c.most(*req)
	calls.Allow = func() error { return cmp.Or(c.run.mayGoOn(), c.allow(most)) }
	calls.Retrying = func(f *model.Failure, _ time.Duration) { c.unsay(f, most) }
}

// allow refuses a call that could pass a cap of the session, with the most that the calls under way in other lanes can
// take: where it could only with those, it waits for one to end. The task stays pending, with its work in the worktree.
func (c caller) allow(most spent) error {
	c.settle()
	r := c.run
	r.mu.Lock()
	defer r.mu.Unlock()
	var passed *config.Reached
	for {
		open := most
		for _, s := range r.reserved {
			open.tokens, open.cost = open.tokens+s.tokens, open.cost+s.cost
		}
		passed = r.o.Caps.Passed(map[string]float64{
			config.MaxTokens: float64(r.Checkpoint.TokensUsed + r.unsaid.tokens + open.tokens),
			config.MaxCost:   r.Checkpoint.Usage.Sum().Cost + r.unsaid.cost + open.cost,
		})
		if passed == nil {
			c.said.reserved = &most
			r.reserved = append(r.reserved, &most)
			return nil
		}
		if len(r.reserved) == 0 {
			break
		}
		r.settled.Wait()
	}
	return Stop{Reason: passed.Stop, Over: []config.Reached{*passed},
		Detail: fmt.Sprintf("the next model call could come to %s (tilth.capMode = strict)", passed)}
}

// settle ends what was reserved for the call before.
func (c caller) settle() {
	r := c.run
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reserved = slices.DeleteFunc(r.reserved, func(s *spent) bool { return s == c.said.reserved })
	c.said.reserved = nil
	r.settled.Broadcast()
}

// unsay counts an attempt whose endpoint did not say what it took as the most that it can have taken. It is counted
// for the run only: the record holds what endpoints say.
func (c caller) unsay(f *model.Failure, most spent) {
	if f.MayCost() {
		c.run.mu.Lock()
		defer c.run.mu.Unlock()
		c.run.unsaid.tokens += most.tokens
		c.run.unsaid.cost += most.cost
	}
}

// heard learns from the end of a call what the next one can take.
func (c caller) heard(req model.Request, reply *model.Reply, err error) {
	if req.MaxTokens == 0 {
		return
	}
	var f *model.Failure
	switch {
	case errors.As(err, &f):
		c.unsay(f, c.most(req))
	case reply == nil:
	case reply.Usage.Prompt+reply.Usage.Eval == 0:
		c.unsay(&model.Failure{}, c.most(req))
	default:
		c.said.messages, c.said.bytes, c.said.tokens = len(req.Messages), bytesOf(req), reply.Usage.Prompt
	}
}
