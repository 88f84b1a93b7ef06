package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

const (
	maxActivity = 16000   // kept bytes of a tool's arguments and of an error event
	maxMessage  = 1 << 20 // kept bytes of a final message
	maxErrors   = 20      // number of kept error events
)

// stream collects the data in a program's events. Lines arrive one at a time and in order.
type stream struct {
	program *Program
	turn    *Turn

	conversation string
	text         string
	partial      []byte // message that arrives in pieces
	usage        Usage  // of this run
	total        Usage  // of the conversation, if totalKnown
	totalKnown   bool
	turns        int
	running      int         // number of running tools
	began        time.Time   // start of the program
	lastOutput   time.Time   // time of the last output
	quiet        bool        // the silence was reported
	waits        string      // API error after which the program waits for a retry, or ""
	success      bool        // the terminal event reported success
	reported     bool        // the program reported a result, and may have continued since
	under        []string    // running subagents and workflows
	background   []string    // background tasks in the last report, for example a shell
	last         *time.Timer // ends an idle program that has reported a result
	how          How         // outcome of another terminal event, or ""
	why          string
	reset        time.Time
	retryAfter   *time.Duration // wait that the program's API asked for
	denied       []string
	errors       []string
	message      string           // id of the message that arrives in pieces
	counted      map[string]bool  // messages counted as steps
	steps        map[string]Usage // numbers per message, because some events repeat them
	others       map[string]bool  // messages of its subagents

	onID func(id string)           // called with the id
	stop func(how How, why string) // ends the program
	// lingered is called when a program that reported a result has been idle long enough.
	lingered func()
	told     string     // last conversation passed to OnConversation
	refusal  error      // error of OnConversation or Emit
	mu       sync.Mutex // both outputs and the silence have separate goroutines
}

func newStream(p *Program, t *Turn) *stream {
	now := time.Now()
	return &stream{program: p, turn: t, steps: map[string]Usage{}, counted: map[string]bool{},
		others: map[string]bool{}, began: now, lastOutput: now}
}

// tell reports the conversation's id once.
func (s *stream) tell(id string) error {
	if id != s.told && s.turn.OnConversation != nil {
		s.told = id
		s.refusal = s.turn.OnConversation(id)
	}
	return s.refusal
}

// maxID limits an id in bytes, because it becomes an argument or a variable of the program.
const maxID = 512

// id reads the conversation's id from an event.
func (s *stream) id(id string) {
	if id == "" || id == s.conversation || len(id) > maxID || text.VisibleLine(id) != id {
		return
	}
	s.conversation = id
	if s.onID != nil {
		s.onID(id)
	}
}

// wait handles an API's answer to a call that the program will repeat by itself, after d if known. It ends a program
// that would wait long. The caller then waits, or asks another agent.
func (s *stream) wait(said string, d time.Duration) {
	if d >= patience {
		how := meaning(0, said)
		if how == UsageLimit {
			s.reset = proc.Now().Add(d).UTC()
		} else {
			s.retryAfter = &d
		}
		s.stop(how, said)
		return
	}
	if s.waits == "" {
		s.emitWait(said, d)
	}
	s.waits, s.lastOutput = said, time.Now()
}

// emitWait records that the program waits for its API by itself.
func (s *stream) emitWait(said string, d time.Duration) {
	w := record.AgentWaits{Who: s.program.Name, Reason: record.Outage,
		Detail: text.HeadBytes(text.VisibleLine(said), 300)}
	if meaning(0, said) == UsageLimit {
		w.Reason = record.UsageLimit
	}
	if d > 0 {
		w.Until = record.FormatTime(proc.Now().Add(d))
	}
	s.emit(&w)
}

// meaning returns the kind of failure by the API's status and a program's words, which have the status if it is 0.
func meaning(status int64, said string) How {
	if m := apiStatus().FindStringSubmatch(said); m != nil && status == 0 {
		status, _ = strconv.ParseInt(m[1], 10, 64) // three digits
	}
	switch model.KindOf(int(status), said) {
	case model.Fatal:
		return Refused
	case model.UsageLimit:
		return UsageLimit
	case model.Overflow:
		return Overflow
	}
	return Failed
}

var apiStatus = pattern.New(`(?:API Error:|status) (4\d\d)\b`)

var status429 = pattern.New(`\b429\b|(?i:too many requests)`)

// silence is called periodically. A long silence between two calls means that the program waits for its API.
func (s *stream) silence(now time.Time, limit time.Duration) {
	idle := now.Sub(s.lastOutput)
	switch {
	case s.program.acp != nil && !s.quiet && idle >= limit && s.running == 0 && s.conversation != "":
		// A thinking model sends events. An agent that waits for its API sends none, and some wait for ever.
		s.quiet = true
		s.emitWait(silent(limit), 0)
		s.stop(UsageLimit, silent(limit)+", and none of its tools is running")
	case (meaning(0, s.waits) == UsageLimit || status429().MatchString(s.waits)) && idle >= limit/3:
		s.stop(meaning(0, s.waits), s.waits)
	case !s.quiet && idle >= limit:
		s.quiet = true
		s.emitWait(silent(limit), 0)
	}
}

func silent(d time.Duration) string { return "it has been silent for " + d.String() }

// quietTime returns how long a program may be silent after its report before git-tilth ends the turn.
func (s *stream) quietTime() time.Duration { return cmp.Or(s.turn.Linger, linger) }

// settle checks after each line whether the turn has ended, apart from the idle time in which the program may continue
// or exit. A turn has not ended while subagents are running.
func (s *stream) settle(quiet time.Duration, over func()) {
	s.reported = s.reported || s.success
	switch ended := s.how != "" || s.success && len(s.under) == 0; {
	case ended && s.last == nil:
		s.last = time.AfterFunc(quiet, over)
	case ended:
		s.last.Reset(quiet)
	case s.last != nil:
		s.last.Stop()
	}
}

// say handles a whole message of the model. The last one is the turn's text.
func (s *stream) say(said string) {
	if strings.TrimSpace(said) != "" {
		s.text = text.HeadBytes(said, maxMessage)
	}
}

// spend counts the tokens of one message, which replaces its earlier count.
func (s *stream) spend(message string, u Usage) {
	s.usage = plus(plus(s.usage, u, 1), s.steps[message], -1)
	s.steps[message] = u
}

// forget removes the counted tokens of messages that another event counts.
func (s *stream) forget(summed func(message string) bool) {
	for message, u := range s.steps {
		if summed(message) {
			s.usage, s.steps[message] = plus(s.usage, u, -1), Usage{}
		}
	}
}

// enough ends a program without a turn limit once its turns are used up. It is called between two model calls, when no
// tool is running.
func (s *stream) enough() {
	if s.program.countsTurns && s.turn.MaxTurns > 0 && s.turns >= s.turn.MaxTurns {
		s.stop(TurnLimit, fmt.Sprintf("turn limit reached (%d)", s.turn.MaxTurns))
	}
}

// toolBegan counts a model call by its first tool, for programs that print tools but not model calls. Tools that run
// at the same time belong to one call.
func (s *stream) toolBegan() {
	if s.running == 0 {
		s.turns++
	}
	s.running++
	if s.pastTurns() {
		s.enough()
	}
}

// pastTurns reports whether the program uses more tools than its turns allow, because no event showed the end of the
// last one.
func (s *stream) pastTurns() bool {
	return s.program.countsTurns && s.turn.MaxTurns > 0 && s.turns > s.turn.MaxTurns
}

func (s *stream) toolEnded() {
	if s.running--; s.running <= 0 {
		s.running = 0
		s.enough()
	}
}

// fail keeps the text of an error event.
func (s *stream) fail(said string) {
	if said = strings.TrimSpace(said); said != "" && len(s.errors) < maxErrors {
		s.errors = append(s.errors, text.HeadBytes(said, maxActivity))
	}
}

func (s *stream) deny(tool string) {
	if tool != "" && len(s.denied) < 100 {
		s.denied = append(s.denied, tool)
	}
}

// uses records the use of a tool. args is JSON.
func (s *stream) uses(tool, args string) {
	kept := json.RawMessage(text.HeadBytes(args, maxActivity))
	if !json.Valid(kept) {
		kept = record.JSON(string(kept))
	}
	s.emit(&record.ToolCall{Tool: tool, Args: kept})
}

// used records a tool's output.
func (s *stream) used(tool, said string, failed bool) {
	res := toolResult(tool, said, utf8.RuneCountInString(said), failed)
	res.IsError = &failed
	s.emit(res)
}

func (s *stream) emit(e record.Event) {
	if s.turn.Emit == nil || s.refusal != nil {
		return
	}
	if s.refusal = s.turn.Emit(e); s.refusal != nil {
		s.stop(Failed, "its activity could not be recorded")
	}
}

// events reads the output of a program that prints a JSON object per line.
func events(read func(*stream, gjson.Result)) func(*stream, []byte) {
	return func(s *stream, line []byte) {
		if e, ok := event(line); ok {
			read(s, e)
		}
	}
}

// event reads one event. Other lines are not events, because programs print warnings between them.
func event(line []byte) (gjson.Result, bool) {
	line = bytes.TrimLeft(line, " \t")
	if len(line) == 0 || line[0] != '{' {
		return gjson.Result{}, false
	}
	e, err := jsonl.Parse(bytes.ToValidUTF8(line, []byte("\uFFFD")))
	return e, err == nil
}

// count returns a number of tokens that is safe to add. Calls limits the sum of a turn.
func count(r gjson.Result) int64 { return int64(max(0, min(r.Num, 1<<40))) }

// objects returns the objects of a list. A lookup in a string could match text that looks like a member.
func objects(list gjson.Result) []gjson.Result {
	if !list.IsArray() {
		return nil
	}
	return slices.DeleteFunc(list.Array(), func(r gjson.Result) bool { return !r.IsObject() })
}

// textOf returns the text of a string or of a list of text blocks.
func textOf(content gjson.Result) string {
	var b strings.Builder
	for _, block := range objects(content) {
		b.WriteString(block.Get("text").Str)
	}
	return content.Str + b.String()
}

// plus adds v to u the given number of times.
func plus(u, v Usage, times int64) Usage {
	return Usage{
		Prompt: u.Prompt + times*v.Prompt, Eval: u.Eval + times*v.Eval, Cached: u.Cached + times*v.Cached,
		Reasoning: u.Reasoning + times*v.Reasoning, Cost: u.Cost + float64(times)*v.Cost,
		CostKnown: u.CostKnown || v.CostKnown,
	}
}

// addedSince returns the growth of a total. A smaller total has been reset, so all of it is new.
func addedSince(prior, total Usage) Usage {
	if total.Prompt < prior.Prompt || total.Eval < prior.Eval {
		return total
	}
	added := plus(total, prior, -1)
	added.Cached, added.Reasoning, added.Cost = max(0, added.Cached), max(0, added.Reasoning), max(0, added.Cost)
	return added
}
