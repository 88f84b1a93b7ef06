package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/text"
)

// acpAuthRequired is the error code of an agent that is not logged in.
const acpAuthRequired = -32000

var (
	acpRefusal = pattern.New(`(?i)\b40[134]\b|authenticat|unauthori[sz]ed|forbidden|not logged in|\blog ?in\b|` +
		`(?:invalid|incorrect).{0,20}\bkey\b|api.?key.{0,20}(?:not valid|invalid|incorrect|missing)|(?:missing|no).{0,20}api.?key`)
	acpRetries = pattern.New(`(?i)retry`)
)

// acpError is an agent's error response.
type acpError struct {
	code   int64
	said   []string // the error's message and the texts in its data
	resets time.Time
}

func newACPError(e gjson.Result) *acpError {
	f := &acpError{code: e.Get("code").Int()}
	if e.IsObject() {
		f.collect(e.Get("message"), "", 0)
		f.collect(e.Get("data"), "", 0)
	} else {
		f.collect(e, "", 0)
	}
	return f
}

// collect collects all texts of an error. Agents put the error of their API into a string of JSON.
func (f *acpError) collect(v gjson.Result, key string, depth int) {
	const deep, many = 6, 20
	if depth > deep || len(f.said) >= many {
		return
	}
	switch {
	case v.IsObject() || v.IsArray():
		v.ForEach(func(k, member gjson.Result) bool {
			f.collect(member, strings.ToLower(k.Str), depth+1)
			return len(f.said) < many
		})
	case v.Type == gjson.Number:
		f.number(key, v.Num)
	case v.Type == gjson.String:
		if i := strings.IndexByte(v.Str, '{'); i >= 0 {
			if nested, ok := event([]byte(strings.TrimSpace(v.Str[i:]))); ok {
				f.collect(gjson.Result{Type: gjson.String, Str: strings.TrimSpace(v.Str[:i])}, key, depth+1)
				f.collect(nested, key, depth+1)
				return
			}
		}
		said := text.HeadBytes(strings.TrimSpace(v.Str), maxActivity)
		if said != "" && !slices.Contains(f.said, said) {
			f.said = append(f.said, said)
		}
	}
}

// number handles a number that identifies the failure or gives its end.
func (f *acpError) number(key string, n float64) {
	switch key = strings.NewReplacer("_", "", "-", "").Replace(key); key {
	case "code", "status", "statuscode", "httpstatus", "httpstatuscode":
		if n >= 400 && n < 600 {
			f.said = append(f.said, fmt.Sprint("status ", int(n)))
		}
	case "resetat", "resetsat":
		f.resets = unixTime(n)
	case "retryafter", "retryafterseconds":
		if n > 0 && n < 1e8 {
			f.resets = proc.Now().Add(time.Duration(n * float64(time.Second))).UTC()
		}
	}
}

var acpEmpty = pattern.New(`(?i)^internal error\.?$`)

// Error returns the error's details, or its message if there are none.
func (f *acpError) Error() string {
	said := slices.DeleteFunc(slices.Clone(f.said), acpEmpty().MatchString)
	if len(said) == 0 {
		return fmt.Sprintf("it answers with the error %d (%s)", f.code, strings.Join(f.said, ""))
	}
	return strings.Join(said, ": ")
}

// means returns the kind of failure and the time of its end.
func (f *acpError) means() (How, time.Time) {
	how, reset := acpMeaning(f.code, strings.Join(f.said, "\n"))
	if !f.resets.IsZero() {
		reset = f.resets
	}
	return how, reset
}

// acpMeaning classifies an agent's failure by code and words. A 429 is a usage limit unless its words say otherwise.
func acpMeaning(code int64, said string) (How, time.Time) {
	how := meaning(max(code, 0), said)
	switch {
	case code == acpAuthRequired, how == Refused:
		return Refused, time.Time{}
	case how == UsageLimit, (code == 429 || acpLimit().MatchString(said)) && !model.Passes(said):
		return UsageLimit, model.ResetIn(said, proc.Now()).UTC()
	case how == Failed && acpRefusal().MatchString(said):
		return Refused, time.Time{}
	}
	return how, time.Time{}
}

// acpLimit matches the words of a limit in an agent's own error, which does not name the limit.
var acpLimit = pattern.New(`(?i)\b429\b|rate.?limit|too many requests|exhausted`)

// acpUsage is a turn's usage as the agent reports it. Agents report it in different messages.
type acpUsage struct {
	told      bool // the answer to the prompt has tokens, possibly null
	nothing   bool // it reports no usage
	of        Usage
	known     bool
	calls     Usage // sum over the turn's model calls
	some      bool
	total     float64 // dollars of the whole conversation
	dollars   bool
	otherCost string // cost in another currency
	notice    string // last message of the agent itself
	// unanswered is true while a prompt has no answer. If the turn ends then, its tokens are unknown.
	unanswered bool
}

// answer handles the answer to the prompt.
func (u *acpUsage) answer(said gjson.Result) {
	used := said.Get("usage")
	if u.told = used.Exists(); u.told {
		u.of = acpTokens(used)
		u.known = u.of.Prompt+u.of.Eval > 0
		u.nothing = !u.known
	}
	if quota := said.Get("_meta.quota.token_count"); !u.known && quota.IsObject() {
		u.of = Usage{Prompt: count(quota.Get("input_tokens")), Eval: count(quota.Get("output_tokens"))}
		u.told, u.known = true, u.of.Prompt+u.of.Eval > 0
		u.nothing = !u.known
	}
}

// call adds the tokens of one model call.
func (u *acpUsage) call(used gjson.Result) {
	u.calls = plus(u.calls, acpTokens(used), 1)
	u.some = u.calls.Prompt+u.calls.Eval > 0
}

// acpTokens reads a number of tokens. The total shows whether the prompt's tokens include cached ones.
func acpTokens(used gjson.Result) Usage {
	if !used.IsObject() {
		return Usage{}
	}
	thought, cached := count(used.Get("thoughtTokens")), count(used.Get("cachedReadTokens"))
	eval := count(used.Get("outputTokens")) + thought
	prompt := count(used.Get("inputTokens")) + cached + count(used.Get("cachedWriteTokens"))
	if total := count(used.Get("totalTokens")); total > 0 {
		eval = min(eval, total)
		prompt = total - eval
	}
	return Usage{Prompt: prompt, Eval: eval, Cached: min(cached, prompt), Reasoning: min(thought, eval)}
}

// cost handles the running total of a conversation.
func (u *acpUsage) cost(c gjson.Result) {
	amount := c.Get("amount")
	switch currency := c.Get("currency").Str; {
	case !c.IsObject() || amount.Type != gjson.Number:
	case currency == "" || strings.EqualFold(currency, "USD"):
		u.total, u.dollars = jsonl.Dollars(amount.Num)
	default:
		u.otherCost = text.HeadBytes(text.VisibleLine(amount.Raw+" "+currency), 50)
	}
}

// tokens returns the tokens of the turn.
func (u *acpUsage) tokens() (of Usage, known bool) {
	if u.known {
		return u.of, true
	}
	return u.calls, u.some
}

// ended returns the ending for the answer to the prompt.
func (c *acpConn) ended() *ending {
	said := c.message.text()
	stopped := c.refused > 0
	switch c.message.stop {
	case "end_turn":
		if c.lied() {
			own := cmp.Or(said, c.usage.notice, "it ended its turn without calling its model")
			how, reset := acpMeaning(0, own)
			c.s.reset, c.lie = reset, true
			return &ending{how: how, why: own}
		}
		if said == "" && stopped {
			return &ending{how: Unfinished, why: "it ended its turn when a permission was refused"}
		}
		return &ending{how: Completed, why: c.s.program.Terminal}
	case "max_turn_requests":
		return &ending{how: TurnLimit, why: "it reached its request limit for a turn"}
	case "max_tokens":
		return &ending{how: Unfinished, why: "it reached its token limit"}
	case "refusal":
		return &ending{how: Unfinished, why: "its model refuses to continue"}
	case "cancelled":
		if stopped {
			return &ending{how: Unfinished, why: "it ended its turn when a permission was refused"}
		}
		return &ending{how: Failed, why: "it reports that its turn was cancelled, but nothing cancelled it"}
	}
	return &ending{how: Failed, why: "it ended its turn for an unknown reason: " +
		cmp.Or(c.message.stop, "none")}
}

// lied reports whether an end_turn is a failure. Some agents send end_turn, with the error as their message, when
// their API refuses them. Such a turn uses no tool and costs nothing.
func (c *acpConn) lied() bool {
	if len(c.tools) > 0 {
		return false
	}
	if _, known := c.usage.tokens(); known {
		return false
	}
	return c.usage.nothing || !c.usage.told && c.row.reportsUsage
}

// outcome returns the result of the turn.
func (c *acpConn) outcome(end *ending, res proc.Outcome) Outcome {
	s := c.s
	used, known := c.usage.tokens()
	prior := s.turn.PriorTotal
	out := Outcome{How: end.how, Conversation: s.conversation, Text: c.message.text(), Turns: s.turns, Denied: s.denied,
		Usage: used, Hint: end.hint, Misset: end.misset, ResumeBy: cmp.Or(c.info.Resume, ""), Skipped: c.skipped,
		LimitReset: s.reset, OtherCost: c.usage.otherCost}
	if c.usage.dollars {
		out.Usage.Cost, out.Usage.CostKnown = c.usage.total, true
		if c.usage.total >= prior.Cost {
			out.Usage.Cost -= prior.Cost
		}
	}
	out.Total = plus(prior, out.Usage, 1)
	if c.usage.dollars {
		out.Total.Cost = c.usage.total
	}
	prompted := c.message.stop != ""
	out.Uncounted = (prompted || c.usage.unanswered) && !known && !c.lie
	switch end.how {
	case Completed:
		out.Turns++
	case NotFound:
		out.Conversation = ""
	}
	if c.lie {
		out.Text = ""
	}
	if out.Conversation == "" && end.how != NotFound {
		out.Conversation = s.turn.Conversation.ID
	}
	why := end.why
	if last := lastLine(string(res.Stderr)); end.why == errACPGone.Error() {
		why = fmt.Sprintf("%s, with exit status %d", end.why, res.ExitCode)
		if last != "" {
			why = last + " (" + why + ")"
			if how, reset := acpMeaning(0, last); how != Failed {
				out.How, out.LimitReset = how, reset
			}
		}
	} else if end.how == Failed && last != "" && !prompted {
		why += " (" + last + ")"
	}
	out.Detail = oneLine(why)
	return out
}
