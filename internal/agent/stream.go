package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/text"
)

const (
	maxActivity = 16000   // characters of one text in an Activity
	maxMessage  = 1 << 20 // bytes of a final message that are kept
	maxErrors   = 20      // error events that are kept
)

// stream collects what a program's events say. Lines arrive one at a time and in order.
type stream struct {
	program *Program
	turn    *Turn

	conversation string
	text         string
	partial      []byte // of a message that arrives in pieces
	usage        Usage  // of this run
	total        Usage  // of the conversation, if totalKnown
	totalKnown   bool
	usageSaid    bool // the program itself summed its usage up
	costKnown    bool
	turns        int
	running      int       // tools that have begun and not ended
	began        time.Time // when the program was started
	heard        time.Time // when it last said something
	quiet        bool      // its silence was told of
	waits        string    // what its API said to a call that it will make again by itself, "" while it does not wait
	success      bool      // the terminal event said so
	how          How       // what another terminal event said, "" if none did
	why          string
	reset        time.Time
	denied       []string
	errors       []string
	message      string           // that the pieces which arrive belong to
	counted      map[string]bool  // messages that are counted as steps
	steps        map[string]Usage // numbers per message, for events that repeat them

	onID func(id string)           // the id was seen
	stop func(how How, why string) // end the program from outside
}

// id takes the conversation's id from an event.
func (s *stream) id(id string) {
	if id == "" || id == s.conversation {
		return
	}
	s.conversation = id
	if s.onID != nil {
		s.onID(id)
	}
}

// hear notes that the program has said something on its standard output.
func (s *stream) hear() { s.heard, s.quiet, s.waits = time.Now(), false, "" }

// wait takes what the API said to a call that the program will make again by itself, after d if it says so. A wait that
// is longer than our patience is for who runs the harness to decide: it is a limit.
func (s *stream) wait(said string, d time.Duration) {
	if d >= patience {
		s.limit(time.Now().Add(d).UTC(), said)
		s.stop(UsageLimit, said)
		return
	}
	if s.waits == "" {
		s.emit(Activity{Kind: "waits", Text: said})
	}
	s.waits, s.heard = said, time.Now()
}

var limitWords = pattern.New(`(?i)\b429\b|rate.?limit|too many requests|quota|usage.?limit|exhausted`)

// silence is asked again and again. A program that waits longer than its own pauses between two calls does what its API
// told it; for how long, it does not say.
func (s *stream) silence(now time.Time, limit time.Duration) {
	idle := now.Sub(s.heard)
	switch {
	case limitWords.MatchString(s.waits) && idle >= limit/3:
		s.stop(UsageLimit, s.waits)
	case !s.quiet && idle >= limit:
		s.quiet = true
		s.emit(Activity{Kind: "quiet", Since: s.heard})
	}
}

// say takes a whole message of the model; the last one is the turn's text.
func (s *stream) say(said string) {
	if strings.TrimSpace(said) == "" {
		return
	}
	s.text = text.HeadBytes(said, maxMessage)
	s.emit(Activity{Kind: "text", Text: said})
}

// spend books the tokens of one message, which replace what was booked for it before.
func (s *stream) spend(message string, u Usage) {
	old := s.steps[message]
	s.steps[message] = u
	s.usage = s.usage.plus(u).minus(old)
}

// flush ends a message that arrived in pieces.
func (s *stream) flush() {
	text := string(s.partial)
	s.partial = nil
	s.say(text)
}

// step counts a model call.
func (s *stream) step() { s.turns++ }

// enough ends a program that has no limit of its own when it has had its turns. It is asked between two model calls,
// when no tool runs that could be cut off halfway.
func (s *stream) enough() {
	if s.program.CountsTurns && s.turn.MaxTurns > 0 && s.turns >= s.turn.MaxTurns {
		s.stop(TurnLimit, fmt.Sprintf("turn limit reached (%d)", s.turn.MaxTurns))
	}
}

// toolBegan counts a model call by its first tool, for programs that print their tools but not their model calls.
// Tools that run at the same time come from one call.
func (s *stream) toolBegan() {
	if s.running == 0 {
		s.step()
	}
	s.running++
}

func (s *stream) toolEnded() {
	if s.running--; s.running <= 0 {
		s.running = 0
		s.enough()
	}
}

// fail keeps the text of an error event.
func (s *stream) fail(said string) {
	said = strings.TrimSpace(said)
	if said == "" {
		return
	}
	if len(s.errors) < maxErrors {
		s.errors = append(s.errors, text.HeadBytes(said, maxActivity))
	}
	s.emit(Activity{Kind: "error", Text: said, IsError: true})
}

// limit takes a structured usage limit.
func (s *stream) limit(reset time.Time, why string) {
	s.how, s.why = UsageLimit, why
	if !reset.IsZero() {
		s.reset = reset
	}
}

func (s *stream) deny(tool string) {
	if tool != "" && len(s.denied) < 100 {
		s.denied = append(s.denied, tool)
	}
}

func (s *stream) emit(a Activity) {
	if s.turn.OnEvent == nil {
		return
	}
	a.Chars = utf8.RuneCountInString(a.Text)
	a.Text = text.HeadBytes(a.Text, maxActivity)
	a.Args = text.HeadBytes(a.Args, maxActivity)
	s.turn.OnEvent(a)
}

// decode reads one event. Lines that are no JSON object are not events: programs print warnings between them.
func decode(line []byte, into any) bool {
	for len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
		line = line[1:]
	}
	return len(line) > 1 && line[0] == '{' && json.Unmarshal(line, into) == nil
}

// textOf returns the text of content that is a string or a list of text blocks.
func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &blocks) != nil {
		return ""
	}
	var b strings.Builder
	for _, block := range blocks {
		b.WriteString(block.Text)
	}
	return b.String()
}

// plus adds two counts.
func (u Usage) plus(v Usage) Usage {
	return Usage{u.Prompt + v.Prompt, u.Eval + v.Eval, u.Cached + v.Cached, u.Reasoning + v.Reasoning, u.Cost + v.Cost}
}

func (u Usage) minus(v Usage) Usage {
	return Usage{u.Prompt - v.Prompt, u.Eval - v.Eval, u.Cached - v.Cached, u.Reasoning - v.Reasoning, u.Cost - v.Cost}
}

// since returns what was added after prior. A total that shrank was counted anew, so that all of it is new.
func (u Usage) since(prior Usage) Usage {
	if u.Prompt < prior.Prompt || u.Eval < prior.Eval {
		return u
	}
	return Usage{u.Prompt - prior.Prompt, u.Eval - prior.Eval, max(0, u.Cached-prior.Cached),
		max(0, u.Reasoning-prior.Reasoning), max(0, u.Cost-prior.Cost)}
}
