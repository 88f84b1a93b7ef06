// Package agent drives coding agents that are installed on this machine: one turn of a program in the session's
// worktree, with a conversation that can be continued later.
//
// Every program is a row of one table (see programs). A row describes the program's start, resume, conversations,
// output and failures. The code around it never asks for a program by name.
// Three rules hold for all rows:
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

// Program is one row of the table: all that is known about one agent program.
type Program struct {
	Name    string // its name in tilth.worker.agent
	Title   string // its name in messages
	Package string // npm package that installs it, "" for a program described by the user
	Binary  string // name on PATH, or an absolute path

	CanResume bool   // a conversation can be continued by another process
	Terminal  string // the event that means success, in words
	Login     string // the command that mends refused credentials

	status    []string       // the arguments that print its login status; nil for none
	loggedOut pattern.Regexp // its output when it is logged out, with a non-zero exit

	// The command line is Binary, base, the arguments of readOnly or write, model, limit, budget, system, Args, begin
	// or resume, tail. In each part {id}, {model}, {turns}, {dollars}, {system}, {gitdir}, {commondir} and {dir} stand
	// for the turn's values; a part that names an empty value is left out as a whole.
	base, model, limit, budget, system, begin, resume, tail []string
	Args                                                    []string // added by the user (tilth.agent.<name>.args)

	env             []string // set for every run, as NAME=value; the placeholders work here too
	write, readOnly rights   // of a run that may change files, and of one that may not
	keyVars         []string // the program's own credentials, which it keeps
	keyFile         place    // the user's settings of the program, in which keyName finds the names of more
	keyName         pattern.Regexp
	state           []state // files that it writes outside the tree

	preset  bool           // takes an id that we choose, a UUID
	validID pattern.Regexp // form of its ids; other ids are not used
	keepsID bool           // another id after a resume means a new conversation
	// countsTurns is for a program without a turn limit: its turns are counted, and it is ended after a tool call.
	countsTurns bool
	rules       []rule // the ways to fail, first match wins

	escapePrompt  func(p string) string   // keeps a prompt from being taken as a command; nil: nothing is special
	read          func(*stream, []byte)   // takes one line of standard output
	watch         func(*stream, []byte)   // takes one line of standard error; may be nil
	finish        func(*stream, *history) // after the end: corrections from the store; may be nil
	store         *transcripts            // where conversations are kept; nil: not known
	shellCommands bool                    // base and resume are shell commands of the user
	acp           *acpRow                 // it speaks the Agent Client Protocol; else nil
	done          pattern.Regexp          // the line with which a program without events says that it is done
}

// place is a directory or file of a program: name in the directory that a variable names, else inHome in the home.
type place struct{ variable, name, inHome string }

// rights are the options that grant a program its permissions.
type rights struct {
	args  [][]string
	alone [][]string // before them, where the program is in no Box
	boxed [][]string // before them, where it is
	env   []string
}

// rule recognises one way to fail by a text in an error event or on standard error.
type rule struct {
	how  How
	text pattern.Regexp
}

// How is the way in which a turn ended.
type How string

// The ways in which a turn can end. All but Completed leave the work unfinished.
const (
	Completed   How = "completed"        // the program's own terminal event
	TurnLimit   How = "turn_limit"       // Turn.MaxTurns was reached
	NotFound    How = "not_found"        // the program does not know the conversation; nothing was done
	UsageLimit  How = "usage_limit"      // the provider's limit; Outcome.LimitReset says until when, if known
	Interrupted How = "interrupted"      // a signal or the end of the context
	Failed      How = "failed"           // anything else; Outcome.Detail has the reason
	TimedOut    How = "timed_out"        // Turn.Timeout was over
	InUse       How = "in_use"           // another process has this conversation open
	Unfinished  How = "unfinished"       // it ended its turn in good order and is not done; Outcome.Detail says why
	Overflow    How = "context_overflow" // the conversation is longer than the model takes
	Refused     How = "refused"          // the API refuses the credentials or the model: trying again mends nothing
)

// Usage counts tokens and dollars, as those of a model's answer are.
type Usage = model.Usage

// Ref names a conversation. With Resume it is continued; without, a new one gets the id ("" lets the program choose).
type Ref struct {
	ID     string
	Resume bool
}

// Turn is the input of one turn of a program.
type Turn struct {
	Prompt, System string
	Dir            string // the worktree; the program runs here and nowhere else
	Model          string // "" is the program's own default
	UnsetModel     string // the command that takes the model back, "" where that is the program's setting
	Conversation   Ref
	MaxTurns       int           // model calls within this turn; 0 is no limit
	MaxCost        float64       // dollars of this turn, for a program that takes a limit; 0 is no limit
	Timeout        time.Duration // wall clock; 0 is no limit
	Linger         time.Duration // quiet after a result that ends the turn; 0 is 20 s
	Env            []string      // complete environment; the harness's own keys are removed from it
	Box            *sandbox.Box  // rights besides writing its own state; nil is no sandbox
	ReadOnly       bool          // may read but not write or run commands
	GitDir         string        // the worktree's git directory, which sandboxes must let through
	CommonDir      string        // the repository's common directory
	Private        string        // a directory for this turn's own files, removed at its end; "" is a temporary one
	Patience       time.Duration // silence that is an event too; 0 is five minutes
	PriorTotal     Usage         // Outcome.Total of the conversation's last turn, zero for a new one
	// Redact redacts secrets in the program's output before it is cut.
	Redact *record.Redactor
	// OnConversation is called with the conversation's id as soon as it is known: before the start for an id that is
	// preset, at the first event otherwise, and again if it changes. An error ends the program and is Run's error.
	OnConversation func(id string) error
	// Emit gets the program's actions as they happen: tool_call, tool_result and agent_waits, with bounded texts. Its
	// calls do not overlap. An error ends the program and is Run's error.
	Emit func(record.Event) error
}

// Outcome is the result of a turn.
type Outcome struct {
	How          How
	Conversation string // "" if unknown
	Text         string // final message
	Usage        Usage  // of this run alone
	// the program's total for the conversation, the next turn's PriorTotal
	Total      Usage
	Turns      int
	Cut        bool      // it had reported a result, went on, and was ended from outside
	LimitReset time.Time // for UsageLimit; zero if unknown
	// RetryAfter is the wait that the program's API asks for; nil if it does not.
	RetryAfter *time.Duration
	Stopped    []string // tasks of a completed turn that the program stopped at its exit: kind and description
	Denied     []string // refused tools
	Detail     string   // one line: why
	Misset     bool     // a setting has a value that the ACP agent does not offer
	Hint       string   // a fix for the user, "" if the row has it
	ResumeBy   string   // how an ACP agent resumes a conversation; "" if unknown or for other programs
	Skipped    int      // lines and updates of an agent by ACP that meant nothing
	Uncounted  bool     // it did not report the usage
	OtherCost  string   // reported cost of the conversation in another currency than dollars
	Unkept     error    // a login that it renewed and that could not be taken over, and where it is now
}

// valid reports whether an id may be handed to the program.
func (p *Program) valid(id string) bool { return p.validID == nil || p.validID().MatchString(id) }

// OnlyReading is added to the prompt of a read-only turn after a refused permission ended the one before.
const OnlyReading = "\n\nThis was asked before, and a tool that you may not use ended it. Use no tool but those that " +
	"read and search."

// NewID returns an id for a new conversation, "" if the program takes none.
func (p *Program) NewID() string {
	if !p.preset {
		return ""
	}
	return uuid.NewString()
}

// programs returns the rows that are searched on PATH, in order. The rows are fresh copies.
func programs() []*Program { return []*Program{claude(), codex(), gemini(), opencode()} }

// allPrograms adds the rows that work only where they are named.
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

// Find returns the first program of the table that lookPath finds, with Binary set to where it is; nil for none.
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
