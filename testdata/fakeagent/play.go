package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// reviewWord matches the word of a review in its prompt.
var reviewWord = regexp.MustCompile(`"review": "([0-9a-f]+)"`)

// player is a run in progress.
type player struct {
	*call
	step    Step
	id      string // current conversation
	said    bool   // the id was printed
	history []string
	tokens  [2]int64 // of the whole conversation: prompt, eval
	turns   int
	out     *bufio.Writer
	voice   voice
}

// voice prints the events of one program.
type voice interface {
	begin(p *player)
	tool(p *player, n int, denied string)
	text(p *player)
	end(p *player) int // prints the terminal event or error and returns the exit status
	waits(p *player)   // announces a wait for its API
	interrupted(p *player, sig os.Signal) int
	refused(p *player, why string) int // "not_found" or "in_use"
}

var voices = map[string]voice{"claude": claude{}, "codex": codex{}}

func play(c *call, step Step) int {
	p := &player{call: c, step: step, out: bufio.NewWriter(os.Stdout), voice: voices[c.kind]}
	defer p.out.Flush()
	if p.voice == nil {
		return complain(fmt.Errorf("no program is called %q", c.kind))
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if code, ok := p.open(); !ok {
		return code
	}
	if err := writeLog(c, p.id, p.history); err != nil {
		return complain(err)
	}
	return p.work(signals)
}

// open finds or creates the conversation.
func (p *player) open() (int, bool) {
	p.id = p.call.id
	if p.step.End == "not_found" || p.step.End == "in_use" {
		return p.voice.refused(p, p.step.End), false
	}
	st := storeOf(p.kind)
	if p.resume && p.step.End != "lost" {
		past, err := st.load(p.id)
		if err != nil {
			return p.voice.refused(p, "not_found"), false
		}
		p.history, p.tokens = past.prompts, past.tokens
	} else if p.id != "" && !p.resume && st.has(p.id) {
		return p.voice.refused(p, "in_use"), false
	}
	if p.id == "" || p.step.End == "lost" || (p.resume && p.step.ID == "changed") {
		p.id = newID()
	}
	return 0, true
}

func (p *player) work(signals chan os.Signal) int {
	if p.step.ID == "" || p.step.ID == "changed" {
		p.voice.begin(p)
	}
	p.out.Flush()
	if err := storeOf(p.kind).save(p, false); err != nil {
		return complain(err)
	}
	fmt.Fprint(os.Stderr, p.step.Stderr)
	if err := p.act(); err != nil {
		return complain(err)
	}
	if p.step.Wait > 0 {
		p.voice.waits(p)
		p.step.Hang = true
	}
	for p.turns = 0; p.turns < p.step.Turns; p.turns++ {
		if p.maxTurns > 0 && p.turns >= p.maxTurns {
			p.step.End = "turn_limit"
			break
		}
		if err := storeOf(p.kind).save(p, true); err != nil {
			return complain(err)
		}
		p.voice.tool(p, p.turns+1, "")
		p.out.Flush()
	}
	for i, tool := range p.step.Denied {
		p.voice.tool(p, p.turns+i+1, tool)
	}
	p.out.Flush()
	if p.step.Hang && p.step.End != "turn_limit" {
		if code, ended := p.wait(signals); ended {
			return code
		}
	}
	return p.finish(signals)
}

// wait blocks until a signal ends the program, or for ever if it ignores signals.
func (p *player) wait(signals chan os.Signal) (int, bool) {
	for sig := range signals {
		if p.step.Deaf {
			continue
		}
		code := p.voice.interrupted(p, sig)
		p.out.Flush()
		return code, true
	}
	return 0, false
}

func (p *player) finish(signals chan os.Signal) int {
	if p.step.ID == "late" {
		p.voice.begin(p)
	}
	if p.step.Text == "" {
		p.step.Text = "done"
	}
	if m := reviewWord.FindStringSubmatch(p.system + p.prompt); m != nil {
		p.step.Text = strings.ReplaceAll(p.step.Text, "{word}", m[1])
	}
	if p.step.End == "" || p.step.End == "linger" || p.step.End == "none" {
		p.voice.text(p)
	}
	if p.step.End != "turn_limit" {
		p.turns++
		if err := storeOf(p.kind).save(p, true); err != nil {
			return complain(err)
		}
	}
	if p.step.Early != nil {
		p.early(signals)
	}
	code := p.voice.end(p)
	p.out.Flush()
	if p.step.End == "linger" {
		if code, ended := p.wait(signals); ended {
			return code
		}
	}
	if p.step.Exit != nil {
		return *p.step.Exit
	}
	return code
}

// early reports a result, and continues later.
func (p *player) early(signals chan os.Signal) {
	last, e := p.step.Text, p.step.Early
	p.step.Text = e.Text
	p.voice.end(p)
	if e.Kind != "" {
		p.event(obj{"type": "system", "subtype": "background_tasks_changed", "session_id": p.shown(),
			"tasks": []obj{{"task_id": "a1", "task_type": e.Kind, "description": "helper"}}})
	}
	p.out.Flush()
	if e.Exit {
		os.Exit(0)
	}
	wait := time.After(time.Duration(e.Gap * float64(time.Second)))
	if e.Never {
		wait = nil
	}
	select {
	case <-wait:
	case sig := <-signals:
		code := p.voice.interrupted(p, sig)
		p.out.Flush()
		os.Exit(code)
	}
	p.event(obj{"type": "system", "subtype": "background_tasks_changed", "session_id": p.shown(), "tasks": []obj{}})
	p.voice.begin(p)
	p.step.Text, p.turns = last, 1
	if out, err := exec.Command("sh", "-c", e.Run).CombinedOutput(); err != nil {
		complainf("%s: %s", err, out)
	}
	p.voice.text(p)
}

// act applies the step to the directory and the output.
func (p *player) act() error {
	for name, content := range p.step.Write {
		path := filepath.Join(p.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	for _, command := range p.step.Run {
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = p.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, out)
		}
	}
	if p.step.Stray {
		// In a new process session, like the shells of the real programs.
		cmd := exec.Command("sleep", "3600")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return err
		}
		if log := os.Getenv("FAKEAGENT_LOG"); log != "" {
			if err := os.WriteFile(log+".stray", []byte(fmt.Sprint(cmd.Process.Pid)), 0o600); err != nil {
				return err
			}
		}
	}
	return p.flood()
}

func (p *player) flood() error {
	block := bytes.Repeat([]byte("x"), 1<<20-1)
	for range p.step.Flood {
		if _, err := p.out.Write(append(block, '\n')); err != nil {
			return err
		}
	}
	return p.out.Flush()
}

// usage returns the tokens of this run.
func (p *player) usage() (prompt, eval int64) {
	prompt, eval = p.price()
	return prompt * int64(p.turns), eval * int64(p.turns)
}

// price returns the tokens of one answer.
func (p *player) price() (prompt, eval int64) {
	prompt, eval = p.step.Prompt, p.step.Eval
	if prompt == 0 {
		prompt = 100
	}
	if eval == 0 {
		eval = 20
	}
	return prompt, eval
}

func newID() string {
	b := make([]byte, 16)
	rand.Read(b)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
