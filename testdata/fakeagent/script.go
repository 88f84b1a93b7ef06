package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Script has the steps of the runs.
type Script struct {
	Steps []Step              `json:"steps"`
	ACP   map[string]ACPSetup `json:"acp"` // agents by ACP, by the names that they are called by
}

// Step is one run. Without any field it says "done" and succeeds.
type Step struct {
	// Conditions: a step is skipped unless its conditions hold.
	When     string `json:"when"`      // the prompt contains this
	Kind     string `json:"kind"`      // the program is this one
	ReadOnly *bool  `json:"read_only"` // it was started read-only
	Resumed  *bool  `json:"resumed"`   // it was started to resume
	Repeat   int    `json:"repeat"`    // how often it can be taken: 0 is once, -1 is always

	// The actions, in this order.
	ID     string            `json:"id"`     // "" as the program does; "missing": never said; "late": after the work; "changed": another one on resume
	Write  map[string]string `json:"write"`  // files in its directory, with their contents
	Run    []string          `json:"run"`    // shell commands in its directory
	Turns  int               `json:"turns"`  // model calls that each use a tool
	Denied []string          `json:"denied"` // tools whose use is refused
	Flood  int               `json:"flood"`  // megabytes of output that are no events
	ACP    *ACPStep          `json:"acp"`    // for an ACP agent
	Stray  bool              `json:"stray"`  // leave a child behind that keeps the output open
	Wait   int               `json:"wait"`   // seconds that its API asks for; it announces the wait
	Stderr string            `json:"stderr"` // printed before, on standard error
	Early  *Early            `json:"early"`  // report a result first, and go on
	Hang   bool              `json:"hang"`   // wait for a signal
	Deaf   bool              `json:"deaf"`   // do not end on SIGTERM or SIGINT
	Text   string            `json:"text"`   // final message; {word} in it is the word of a review
	Prompt int64             `json:"prompt"` // tokens of each model call, default 100
	Eval   int64             `json:"eval"`   // default 20
	Cost   float64           `json:"cost"`   // dollars of the run, if the program reports them

	// End is how it ends: "" as success, "none" without a terminal event, "turn_limit", "usage_limit", "refused" (its
	// credentials are), "error", "not_found", "in_use", "lost" (begins another conversation instead of resuming),
	// "linger" (terminal event, but does not exit).
	End   string `json:"end"`
	Reset int64  `json:"reset"` // for usage_limit: seconds since 1970
	Exit  *int   `json:"exit"`  // exit status instead of the program's
}

// Early is a result that is not the end.
type Early struct {
	Text  string  `json:"text"`
	Gap   float64 `json:"gap"`   // seconds until it continues
	Kind  string  `json:"kind"`  // kind of the background task that it reports: local_agent, local_bash; "" for none
	Never bool    `json:"never"` // it does not go on
	Exit  bool    `json:"exit"`  // the program exits, and its task ends with it
	Run   string  `json:"run"`   // shell command that it runs when it continues
}

func readScript() (script Script, err error) {
	path := os.Getenv("FAKEAGENT_SCRIPT")
	if path == "" {
		return script, nil
	}
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &script)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return script, err
}

// takeStep finds the step for this call and marks it as used. Several runs may do that at the same time.
func takeStep(c *call) (Step, error) {
	path := os.Getenv("FAKEAGENT_SCRIPT")
	script, err := readScript()
	if err != nil || path == "" {
		return Step{}, err
	}
	used, err := os.OpenFile(path+".used", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return Step{}, err
	}
	defer used.Close()
	if err := syscall.Flock(int(used.Fd()), syscall.LOCK_EX); err != nil {
		return Step{}, err
	}
	counts := map[int]int{}
	// An empty file is the first run.
	_ = json.NewDecoder(used).Decode(&counts)
	for i, step := range script.Steps {
		if !step.holds(c) || (step.Repeat >= 0 && counts[i] > step.Repeat-min(1, step.Repeat)) {
			continue
		}
		counts[i]++
		encoded, err := json.Marshal(counts)
		if err != nil {
			return Step{}, err
		}
		if err := used.Truncate(0); err != nil {
			return Step{}, err
		}
		_, err = used.WriteAt(encoded, 0)
		return step, err
	}
	return Step{}, nil
}

func (s Step) holds(c *call) bool {
	return strings.Contains(c.prompt, s.When) && (s.Kind == "" || s.Kind == c.kind) &&
		(s.ReadOnly == nil || *s.ReadOnly == c.readOnly) && (s.Resumed == nil || *s.Resumed == c.resume)
}

// Run is the log entry of a run.
type Run struct {
	Kind     string   `json:"kind"`
	Args     []string `json:"args"`
	Env      []string `json:"env"`
	Dir      string   `json:"dir"`
	Prompt   string   `json:"prompt"`
	System   string   `json:"system"`
	ID       string   `json:"id"`
	Resumed  bool     `json:"resumed"`
	ReadOnly bool     `json:"read_only"`
	MaxTurns int      `json:"max_turns"`
	History  []string `json:"history"` // the prompts of the conversation before this one
}

func writeLog(c *call, id string, history []string) error {
	path := os.Getenv("FAKEAGENT_LOG")
	if path == "" {
		return nil
	}
	line, err := json.Marshal(Run{c.kind, c.args, os.Environ(), c.dir, c.prompt, c.system, id, c.resume, c.readOnly,
		c.maxTurns, history})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(append(line, '\n'))
	return err
}
