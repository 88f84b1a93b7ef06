// Package agent runs coding agents that are installed on this machine: one turn of a program in the session's
// worktree, with a conversation that can be continued later.
//
// Every program is a row of one table (see programs). A row describes the program's start, resume, conversations,
// output and failures. The other code never checks a program's name. Three rules apply to all rows:
//
//   - success is the program's own terminal event; exit status 0 proves nothing,
//   - a conversation's id is reported before the program can do work, if the program makes that possible,
//   - a program's failure is recognised by its error events and standard error, never by the text of the model.
package agent

import (
	"time"

	"github.com/google/uuid"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// Program is one row of the table: all facts about one agent program.
type Program struct {
	Name    string // name in tilth.worker.agent
	Title   string // name in messages
	Package string // npm package that installs it; "" for a program described by the user
	Binary  string // name on PATH, or an absolute path

	CanResume bool   // another process can continue a conversation
	Terminal  string // event that means success, in words
	Login     string // command that renews refused credentials

	status    []string       // arguments that print the login status; nil for none
	loggedOut pattern.Regexp // output of status when logged out, with a non-zero exit

	// The command line is Binary, base, the arguments of readOnly or write, model, limit, budget, system, Args, begin
	// or resume, tail. In each part, {id}, {model}, {turns}, {dollars}, {system}, {gitdir}, {commondir} and {dir}
	// stand for the turn's values. A part with an empty value is omitted.
	base, model, limit, budget, system, begin, resume, tail []string
	Args                                                    []string // added by the user (tilth.agent.<name>.args)

	env             []string // set for every run, as NAME=value; the placeholders work here too
	write, readOnly rights   // rights of a run that may change files, and of one that may not
	keyVars         []string // the program's own credentials, which it keeps
	keyFile         place    // settings of the program, in which keyName finds names of more keys
	keyName         pattern.Regexp
	state           []state // files that the program writes outside the tree

	preset  bool           // accepts an id that git-tilth chooses, a UUID
	validID pattern.Regexp // form of the program's ids; other ids are not used
	keepsID bool           // another id after a resume means a new conversation
	// countsTurns is for a program without a turn limit. git-tilth counts its turns and ends it after a tool call.
	countsTurns bool
	rules       []rule // kinds of failure; the first match wins

	escapePrompt  func(p string) string   // escapes a prompt that looks like a command; nil: not needed
	read          func(*stream, []byte)   // handles one line of standard output
	watch         func(*stream, []byte)   // handles one line of standard error; may be nil
	finish        func(*stream, *history) // corrects the result from the store after the end; may be nil
	store         *transcripts            // store of the conversations; nil: unknown
	shellCommands bool                    // base and resume are shell commands of the user
	acp           *acpRow                 // row for the Agent Client Protocol, or nil
	done          pattern.Regexp          // the line with which a program without events reports success
}

// place is a directory or file of a program: name in the directory that a variable names, else inHome in the home
// directory.
type place struct{ variable, name, inHome string }

// rights are the options that grant a program its permissions.
type rights struct {
	args  [][]string
	alone [][]string // options before them without a Box
	boxed [][]string // options before them in a Box
	env   []string
}

// rule recognises one kind of failure by a text in an error event or on standard error.
type rule struct {
	how  How
	text pattern.Regexp
}

// How is the kind of a turn's end.
type How string

// The kinds of a turn's end. All but Completed leave the work unfinished.
const (
	Completed   How = "completed"        // the program's own terminal event
	TurnLimit   How = "turn_limit"       // Turn.MaxTurns was reached
	NotFound    How = "not_found"        // the program does not know the conversation, and did nothing
	UsageLimit  How = "usage_limit"      // the provider's limit; Outcome.LimitReset is its end, if known
	Interrupted How = "interrupted"      // a signal or the end of the context
	Failed      How = "failed"           // any other failure; Outcome.Detail has the reason
	TimedOut    How = "timed_out"        // Turn.Timeout has passed
	InUse       How = "in_use"           // another process uses the conversation
	Unfinished  How = "unfinished"       // the program ended normally but is not done; Outcome.Detail has the reason
	Overflow    How = "context_overflow" // the conversation is too long for the model
	Refused     How = "refused"          // the API refuses the credentials or the model; a retry cannot help
)

// Usage counts tokens and dollars.
type Usage = model.Usage

// Ref names a conversation. With Resume it is continued. Without Resume a new one gets the id; "" lets the program
// choose.
type Ref struct {
	ID     string
	Resume bool
}

// Turn is the input of one turn of a program.
type Turn struct {
	Prompt, System string
	Dir            string // the worktree, and the program's working directory
	Model          string // "" is the program's own default
	UnsetModel     string // command that unsets the model; "" if it is the program's setting
	Conversation   Ref
	MaxTurns       int           // model calls within this turn; 0 is no limit
	MaxCost        float64       // dollars of this turn, for a program with a cost limit; 0 is no limit
	Timeout        time.Duration // wall clock; 0 is no limit
	Linger         time.Duration // idle time after a result that ends the turn; 0 is 20 s
	Env            []string      // complete environment; git-tilth's own keys are removed
	Box            *sandbox.Box  // rights besides writing the program's state; nil is no sandbox
	ReadOnly       bool          // the program may read, but not write or run commands
	GitDir         string        // the worktree's git directory, which sandboxes must allow
	CommonDir      string        // the repository's common directory
	Private        string        // directory for this turn's files, removed at its end; "" is a temporary one
	Patience       time.Duration // silence that is an event; 0 is five minutes
	PriorTotal     Usage         // Outcome.Total of the conversation's last turn, zero for a new one
	// Redact redacts secrets in the program's output before it is cut.
	Redact *record.Redactor
	// OnConversation gets the conversation's id as soon as it is known: before the start for a preset id, else at the
	// first event, and again if it changes. An error ends the program and is Run's error.
	OnConversation func(id string) error
	// Emit gets the program's actions as they happen: tool_call, tool_result and agent_waits, with shortened texts.
	// Its calls do not overlap. An error ends the program and is Run's error.
	Emit func(record.Event) error
}

// Outcome is the result of a turn.
type Outcome struct {
	How          How
	Conversation string // "" if unknown
	Text         string // final message
	Usage        Usage  // of this run only
	// Total is the program's total for the conversation, for the next turn's PriorTotal.
	Total      Usage
	Turns      int
	Cut        bool      // git-tilth ended it while it continued after a reported result
	LimitReset time.Time // for UsageLimit; zero if unknown
	// RetryAfter is the wait that the program's API asks for, or nil.
	RetryAfter *time.Duration
	Stopped    []string // tasks that the program stopped at the exit of a completed turn: kind and description
	Denied     []string // refused tools
	Detail     string   // the reason, in one line
	Misset     bool     // a setting has a value that the ACP agent does not offer
	Hint       string   // fix for the user, or ""
	ResumeBy   string   // how an ACP agent resumes a conversation; "" if unknown or for other programs
	Skipped    int      // ignored lines and updates of an ACP agent
	Uncounted  bool     // the program reported no usage
	OtherCost  string   // cost of the conversation in a currency other than dollars
	Unkept     error    // a renewed login that could not be copied back, and its path
}

// valid reports whether an id can be passed to the program.
func (p *Program) valid(id string) bool { return p.validID == nil || p.validID().MatchString(id) }

// OnlyReading is added to the prompt of a read-only turn if a refused permission ended the last turn.
const OnlyReading = "\n\nYour last answer to this ended because it used a tool that is not allowed. Use only tools " +
	"that read and search."

// NewID returns an id for a new conversation, or "" if the program accepts none.
func (p *Program) NewID() string {
	if !p.preset {
		return ""
	}
	return uuid.NewString()
}

// programs returns new copies of the rows that are searched on PATH, in order.
func programs() []*Program { return []*Program{claude(), codex(), gemini(), opencode()} }

// allPrograms adds the rows that are used only by name.
func allPrograms() []*Program { return append(programs(), copilot(), qwen()) }

// byName returns the row with this name.
func byName(name string) (*Program, bool) {
	for _, p := range allPrograms() {
		if p.Name == name {
			return p, true
		}
	}
	return nil, false
}

// Find returns the first program of the table that lookPath finds, with its path in Binary, or nil.
func Find(lookPath func(string) (string, error)) *Program {
	for _, p := range programs() {
		if path, err := lookPath(p.Binary); err == nil && path != "" {
			p.Binary = path
			return p
		}
	}
	return nil
}

var uuidForm = pattern.New(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)
