package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// scene is the shared state of one program's checks; they run in order and each builds on the one before.
type scene struct {
	*rig
	dir   string
	git   [2]string
	begun time.Time
	conv  session.Conversation
	total agent.Usage
	told  []string
}

var checks = []struct {
	name string
	do   func(*scene) error
	// byACP runs the checks that also apply to a program by the Agent Client Protocol.
	byACP bool
}{
	{"the first run stops at its turn limit", firstRun, true},
	{"resume continues the conversation", resumed, true},
	{"a run that is ended can be resumed", ended, true},
	{"a command that is ended is gone, and the conversation goes on", endedInCommand, true},
	{"a worktree made again at its path is resumed in", again, false},
	{"a deleted transcript is not found, and a fresh conversation repairs the id", deleted, false},
	{"discovery finds this directory's conversation and no other's", discovered, false},
	{"the worker can commit", commits, false},
	{"read-only reads and changes nothing", readOnly, true},
	{"an interview is interrupted at every question and gone on with", interviewed, false},
	{"a prompt is not taken as a command or a file", plainPrompt, true},
	{"an error of the API is a failure", apiError, false},
	{"refused credentials are reported at once", refused, true},
	{"hours of waiting are a usage limit", longWait, false},
	{"tokens booked are tokens given, whatever ends a run", tokens, false},
	{"a usage limit is one", usageLimit, false},
	{"an agent in the background is waited for", background, false},
	{"a hostile tree does not turn its judge", hostileTree, true},
	{"a whole run is judged from the judge's directory", wholeRun, false},
	{"two tasks side by side are killed, and each goes on in its own conversation", sideBySide, false},
}

// check runs all checks and returns how many failed.
func (r *rig) check() int {
	fmt.Printf("\n%s %s\n", r.program.Title, r.version)
	s := &scene{rig: r, begun: time.Now().Add(-time.Second)}
	var err error
	if s.dir, s.git, err = worktree(r.home); err != nil {
		fmt.Println("  ", err)
		return 1
	}
	s.box = s.box.Of(s.dir)
	failed := 0
	for _, c := range checks {
		if !r.chosen.MatchString(c.name) || r.program.SpeaksACP() && !c.byACP {
			continue
		}
		if s.ctx.Err() != nil {
			fmt.Println("   interrupted")
			return failed + 1
		}
		began := time.Now()
		if err := c.do(s); err != nil {
			failed++
			fmt.Printf("   FAILED  %s: %v\n", c.name, err)
			continue
		}
		fmt.Printf("   ok      %s (%.1f s)\n", c.name, time.Since(began).Seconds())
	}
	return failed
}

// run plays one turn with the given answers of the model.
func (s *scene) run(prompt string, ref agent.Ref, change func(*agent.Turn),
	brain func(n int, body string) answer) (agent.Outcome, error) {
	s.stub.play(brain)
	t := agent.Turn{Prompt: prompt, System: "You work in a test.", Dir: s.dir, Model: s.model, Conversation: ref,
		Timeout: 2 * time.Minute, Env: s.env,
		GitDir: s.git[0], CommonDir: s.git[1], PriorTotal: s.total, Box: s.box.With(s.dir).Reading(s.git[1]),
		OnConversation: func(id string) error { s.told = append(s.told, id); return nil }}
	if s.verbose {
		t.Emit = func(e record.Event) error {
			_, err := fmt.Printf("      %T %+.300v\n", e, e)
			return err
		}
	}
	if change != nil {
		change(&t)
	}
	if t.ReadOnly {
		t.Box = s.box.Reading(s.dir)
	}
	out, err := s.program.Run(s.ctx, t)
	if s.verbose {
		fmt.Printf("      %+v %v\n", out, err)
	}
	return out, err
}

// want checks the end of a turn.
func want(out agent.Outcome, err error, how agent.How) error {
	if err != nil {
		return err
	}
	if out.How != how {
		return fmt.Errorf("it ended as %s (%s), not as %s", out.How, out.Detail, how)
	}
	return nil
}

// holds checks that the last request of the conversation has all of these texts.
func (s *scene) holds(parts ...string) error {
	requests := s.stub.requests()
	if len(requests) == 0 {
		return errors.New("the stub got no request")
	}
	for _, part := range parts {
		if !strings.Contains(requests[len(requests)-1], part) {
			return fmt.Errorf("the request does not hold %q", part)
		}
	}
	return nil
}

func working(n int, _ string) answer {
	return answer{shell: fmt.Sprintf("echo step %d >> steps.txt", n)}
}

func finished(int, string) answer {
	return answer{text: "All done.\n```json\n{\"summary\": \"it works\"}\n```"}
}

func firstRun(s *scene) error {
	ref := agent.Ref{ID: s.program.NewID()}
	out, err := s.run("do the FIRST-MARKER thing", ref, func(t *agent.Turn) { t.MaxTurns = 2 }, working)
	if err := want(out, err, agent.TurnLimit); err != nil {
		return err
	}
	s.remember(out)
	data, err := os.ReadFile(filepath.Join(s.dir, "steps.txt"))
	switch {
	case err != nil:
		return err
	case !strings.HasPrefix(string(data), "step 1\nstep 2\n"):
		return fmt.Errorf("steps.txt holds %q", data)
	case len(s.told) == 0 || s.told[0] != out.Conversation || (ref.ID != "" && ref.ID != out.Conversation):
		return fmt.Errorf("told %v, preset %q, conversation %s", s.told, ref.ID, out.Conversation)
	case !out.Uncounted && (out.Usage.Prompt < 180 || out.Usage.Eval == 0):
		return fmt.Errorf("usage %+v", out.Usage)
	}
	return nil
}

func (s *scene) remember(out agent.Outcome) {
	s.conv = session.Conversation{Agent: s.program.Name, ID: out.Conversation, Cwd: s.dir, Model: s.model}
	s.total = out.Total
}

// forgets reports whether the program loses conversations. Gemini CLI over ACP removes a cancelled turn, so that
// nothing is left of a first one, and a load within a minute of the start empties the conversation.
func (s *scene) forgets() bool { return s.program.Name == "gemini" }

// choose returns the choice and checks its kind.
func (s *scene) choose(how string) (agent.Choice, error) {
	if s.forgets() {
		return s.program.Fresh("a conversation is lost with a turn that was cancelled"), nil
	}
	c := s.program.Choose(agent.Search{Stored: &s.conv, Dir: s.dir, Model: s.model, Env: s.env,
		Since: s.begun})
	if c.How != how {
		return c, fmt.Errorf("the choice is %s (%s), not %s", c.How, c.Why, how)
	}
	return c, nil
}

func resumed(s *scene) error { return s.goOn("SECOND-MARKER", "FIRST-MARKER") }

// goOn resumes the stored conversation and checks that the earlier messages are in the request.
func (s *scene) goOn(marker string, before ...string) error {
	choice, err := s.choose("stored")
	if err != nil {
		return err
	}
	out, err := s.run("now the "+marker+" thing", choice.Ref, nil, finished)
	if err := want(out, err, agent.Completed); err != nil {
		return err
	}
	last := s.conv.ID
	s.remember(out)
	if object, ok := agent.FinalJSON(out.Text); !ok || !strings.Contains(string(object), "it works") {
		return fmt.Errorf("the final message is %q", out.Text)
	}
	if out.Usage.Prompt < 90 || out.Usage.Prompt > 120 {
		return fmt.Errorf("usage of one model call %+v", out.Usage)
	}
	if s.forgets() {
		return s.holds(marker, "You work in a test.")
	}
	if out.Conversation != last {
		return fmt.Errorf("conversation %s became %s", last, out.Conversation)
	}
	return s.holds(append(before, marker, "You work in a test.")...)
}

func ended(s *scene) error {
	choice, err := s.choose("stored")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	s.stub.play(func(n int, body string) answer {
		if n == 1 {
			return working(n, body)
		}
		cancel()
		return answer{hang: true}
	})
	out, err := s.program.Run(ctx, agent.Turn{Prompt: "the THIRD-MARKER thing", Dir: s.dir, Model: s.model,
		Conversation: choice.Ref, Timeout: 2 * time.Minute,
		Env: s.env, GitDir: s.git[0], CommonDir: s.git[1], PriorTotal: s.total,
		Box: s.box.With(s.dir).Reading(s.git[1])})
	if err := want(out, err, agent.Interrupted); err != nil {
		return err
	}
	s.total = out.Total
	return s.goOn("FOURTH-MARKER", "FIRST-MARKER", "THIRD-MARKER")
}

// endedInCommand kills the program while its shell command runs.
func endedInCommand(s *scene) error {
	choice, err := s.choose("stored")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	begun := filepath.Join(s.dir, "begun")
	s.stub.play(func(n int, body string) answer {
		return answer{shell: "touch begun; for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 7; done; touch ended"}
	})
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(begun); err == nil {
				cancel()
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	out, err := s.program.Run(ctx, agent.Turn{Prompt: "the LONG-MARKER thing", Dir: s.dir, Model: s.model,
		Conversation: choice.Ref, Timeout: 2 * time.Minute,
		Env: s.env, GitDir: s.git[0], CommonDir: s.git[1], PriorTotal: s.total,
		Box: s.box.With(s.dir).Reading(s.git[1])})
	if err := want(out, err, agent.Interrupted); err != nil {
		return err
	}
	s.total = out.Total
	return s.goOn("AFTER-MARKER", "FIRST-MARKER", "LONG-MARKER")
}

func again(s *scene) error {
	for _, args := range [][]string{{"worktree", "remove", "--force", s.dir},
		{"worktree", "add", "-q", s.dir, "session"}} {
		if out, err := exec.Command("git",
			append([]string{"--git-dir", s.git[1]}, args...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("git %v: %w: %s", args, err, out)
		}
	}
	return s.goOn("FIFTH-MARKER", "FIRST-MARKER")
}

func deleted(s *scene) error {
	lost := s.conv.ID
	if err := setups[s.program.Name].forget(s.rig, lost); err != nil {
		return err
	}
	if gone, why := s.program.Stored(s.env, s.dir, lost); !gone {
		return fmt.Errorf("the store has it still: %s", why)
	}
	out, err := s.run("on with it", agent.Ref{ID: lost, Resume: true}, nil, finished)
	if err := want(out, err, agent.NotFound); err != nil {
		return err
	}
	if n := len(s.stub.requests()); n > 0 {
		return fmt.Errorf("%d requests were made without the conversation", n)
	}
	choice, err := s.choose("fresh")
	if err != nil {
		return err
	}
	s.total = agent.Usage{}
	out, err = s.run("do the SIXTH-MARKER thing", choice.Ref, nil, finished)
	if err := want(out, err, agent.Completed); err != nil {
		return err
	}
	s.remember(out)
	if out.Conversation == lost || out.Conversation == "" {
		return fmt.Errorf("the conversation is %q again", out.Conversation)
	}
	return s.goOn("SEVENTH-MARKER", "SIXTH-MARKER")
}

func discovered(s *scene) error {
	found := func(dir string, since time.Time, except ...string) string {
		c := s.program.Choose(agent.Search{Env: s.env, Dir: dir, Since: since, Except: except})
		if !c.Ref.Resume {
			return ""
		}
		return c.Ref.ID
	}
	if id := found(s.dir, s.begun); id != s.conv.ID {
		return fmt.Errorf("found %q, not %s", id, s.conv.ID)
	}
	if id := found(s.dir, time.Now()); id != "" {
		return fmt.Errorf("found %q, which is too old", id)
	}
	if id := found(s.dir, s.begun, s.conv.ID); id != "" {
		return fmt.Errorf("found %q, which was excepted", id)
	}
	repo := filepath.Join(s.home, "repo")
	if id := found(repo, s.begun); id != "" {
		return fmt.Errorf("found %q for another directory", id)
	}
	if gone, _ := s.program.Stored(s.env, repo, s.conv.ID); !gone {
		return errors.New("the conversation counts as another directory's")
	}
	return nil
}

func commits(s *scene) error {
	out, err := s.run("commit", agent.Ref{ID: s.program.NewID()}, nil, func(n int, body string) answer {
		if n == 1 {
			return answer{
				shell: "git -c user.name=w -c user.email=w@localhost commit -q --allow-empty -m by-the-worker"}
		}
		return finished(n, body)
	})
	if err := want(out, err, agent.Completed); err != nil {
		return err
	}
	subject, err := exec.Command("git", "-C", s.dir, "log", "-1", "--format=%s").Output()
	if s.box != nil {
		// The program cannot read git's own directory, and git reports that.
		if said := s.lastResult(); strings.TrimSpace(string(subject)) != "start" ||
			!strings.Contains(said, "fatal: Unable to create") {
			return fmt.Errorf("the last commit is %q (%v); the tool said %s", subject, err, said)
		}
		return nil
	}
	if err != nil || strings.TrimSpace(string(subject)) != "by-the-worker" {
		return fmt.Errorf("the last commit is %q (%v); the tool said %s", subject, err, s.lastResult())
	}
	return nil
}

// lastResult returns the end of the last request, with the tool's output.
func (s *scene) lastResult() string {
	requests := s.stub.requests()
	if len(requests) == 0 {
		return ""
	}
	last := requests[len(requests)-1]
	if i := strings.LastIndex(last, "by-the-worker"); i >= 0 {
		last = last[i:]
	}
	return last[:min(len(last), 700)]
}

func readOnly(s *scene) error {
	if err := os.WriteFile(filepath.Join(s.dir, "good.txt"), []byte("WHAT-THE-FILE-SAYS\n"), 0o600); err != nil {
		return err
	}
	out, err := s.run("judge", agent.Ref{ID: s.program.NewID()}, func(t *agent.Turn) { t.ReadOnly = true },
		func(n int, body string) answer {
			switch n {
			case 1:
				return answer{shell: "echo bad > bad.txt"}
			case 2:
				return answer{write: filepath.Join(s.dir, "bad.txt")}
			case 3:
				return answer{read: filepath.Join(s.dir, "good.txt")}
			}
			return finished(n, body)
		})
	if err != nil {
		return err
	}
	if s.program.SpeaksACP() && out.How == agent.Unfinished { // a refusal ends the turn of some
		out, err = s.run("judge"+agent.OnlyReading, agent.Ref{}, func(t *agent.Turn) { t.ReadOnly = true },
			func(n int, body string) answer {
				if n == 1 {
					return answer{read: filepath.Join(s.dir, "good.txt")}
				}
				return finished(n, body)
			})
		if err != nil {
			return err
		}
	}
	if _, err := os.Stat(filepath.Join(s.dir, "bad.txt")); err == nil {
		return errors.New("it wrote a file")
	}
	if err := want(out, nil, agent.Completed); err != nil {
		return err
	}
	if err := s.holds("WHAT-THE-FILE-SAYS"); err != nil {
		return fmt.Errorf("it could not read: %w", err)
	}
	if s.program.SpeaksACP() { // it shows its stored conversation only at a load
		return nil
	}
	gone, why := s.program.Stored(s.env, s.dir, out.Conversation)
	if (s.program.Name == "claude" || s.program.Name == "codex") && !gone {
		return fmt.Errorf("it left a conversation: %s", why)
	}
	return nil
}

func plainPrompt(s *scene) error {
	if err := os.WriteFile(filepath.Join(s.dir, "secret.txt"), []byte("CONTENT-OF-THE-FILE\n"), 0o600); err != nil {
		return err
	}
	out, err := s.run("/help @secret.txt and @pytest.fixture END-MARKER", agent.Ref{ID: s.program.NewID()},
		func(t *agent.Turn) { t.System = "" }, finished)
	if err := want(out, err, agent.Completed); err != nil {
		return err
	}
	if err := s.holds("/help ", "END-MARKER"); err != nil {
		return err
	}
	if s.holds("CONTENT-OF-THE-FILE") == nil {
		return errors.New("the file's content was put into the prompt")
	}
	return nil
}
