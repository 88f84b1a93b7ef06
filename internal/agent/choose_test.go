package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/session"
)

func TestChoose(t *testing.T) {
	f := newFake(t)
	p, _ := byName("claude")
	have := f.run(p, f.turn("x", Ref{ID: p.NewID()})).Conversation
	lost := uuid.NewString()
	elsewhere := t.TempDir()
	stored := func(agent, id, cwd, model string) *session.Conversation {
		return &session.Conversation{Agent: agent, ID: id, Cwd: cwd, Model: model}
	}
	for _, c := range []struct {
		name             string
		program          *Program
		stored           *session.Conversation
		dir              string
		fresh, continue_ bool
		except           []string
		want             string // its How
		why              string // part of its Why
	}{
		{name: "stored", stored: stored("claude", have, f.dir, "m"), want: "stored", why: "transcript"},
		{name: "fresh was asked for", stored: stored("claude", have, f.dir, "m"), fresh: true, want: "fresh",
			why: "asked"},
		{name: "lost", stored: stored("claude", lost, f.dir, "m"), want: "fresh", why: "cannot be resumed"},
		{name: "lost, but continuing was asked for", stored: stored("claude", lost, f.dir, "m"), continue_: true,
			want: "stored", why: "asked for"},
		{name: "of another program", stored: stored("codex", have, f.dir, "m"), want: "fresh", why: "belongs to codex"},
		{name: "of another program, continuing was asked for", stored: stored("codex", have, f.dir, "m"),
			continue_: true, want: "fresh", why: "belongs to codex"},
		{name: "of another model", stored: stored("claude", have, f.dir, "other"), want: "fresh", why: "other"},
		{name: "of another directory", stored: stored("claude", have, elsewhere, "m"), want: "fresh", why: elsewhere},
		{name: "no id", stored: stored("claude", "; rm -rf /", f.dir, "m"), continue_: true, want: "fresh",
			why: "not an id"},
		{name: "nothing stored", want: "discovered", why: "newest"},
		{name: "nothing stored, and the one there is another task's", except: []string{have}, want: "fresh",
			why: "no conversation"},
		{name: "nothing stored, in another directory", dir: elsewhere, want: "fresh", why: "no conversation"},
		{name: "a program without resume", program: &Program{Name: "mine"}, stored: stored("mine", have, f.dir, "m"),
			want: "fresh", why: "cannot resume"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.program == nil {
				c.program = p
			}
			if c.dir == "" {
				c.dir = f.dir
			}
			got := c.program.Choose(Search{
				Stored: c.stored, Dir: c.dir, Model: "m", Env: f.env, Except: c.except, Fresh: c.fresh,
				Continue: c.continue_,
			})
			if got.How != c.want || !strings.Contains(got.Why, c.why) || (got.How == "fresh") == got.Ref.Resume {
				t.Errorf("%+v", got)
			}
			if got.How == "fresh" && (got.Ref.ID == have || got.Ref.ID == lost) {
				t.Error("an id is used again")
			}
		})
	}
}

// As in the loop, a lost conversation is replaced once, and its replacement is resumed.
func TestLostConversationIsRepaired(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		f := newFake(t)
		conv := session.Conversation{Agent: p.Name, Cwd: f.dir}
		walk := func(prompt string, force bool) (hows []string, last Outcome) {
			choice := p.Choose(Search{Stored: &conv, Dir: f.dir, Env: f.env, Continue: force})
			for range 2 {
				turn := f.turn(prompt, choice.Ref)
				turn.OnConversation = func(id string) error { conv.ID = id; return nil }
				last = f.run(p, turn)
				hows = append(hows, choice.How+":"+string(last.How))
				if last.How != NotFound {
					break
				}
				choice = p.Fresh("lost")
			}
			return hows, last
		}
		walk("FIRST", false)
		first := conv.ID
		f.forget()
		hows, _ := walk("SECOND", true)
		if got := strings.Join(hows, " "); got != "stored:not_found fresh:completed" {
			t.Fatalf("%s", got)
		}
		if conv.ID == first {
			t.Error("the stored id was not repaired")
		}
		if hows, _ = walk("THIRD", false); strings.Join(hows, " ") != "stored:completed" {
			t.Errorf("%s", hows)
		}
		runs := f.runs()
		if last := runs[len(runs)-1]; len(last.History) != 1 || !strings.Contains(last.History[0], "SECOND") {
			t.Errorf("history %q", last.History)
		}
	})
}

func TestFind(t *testing.T) {
	got := Find(func(name string) (string, error) {
		if name == "codex" || name == "gemini" {
			return "/bin/" + name, nil
		}
		return "", os.ErrNotExist
	})
	if got == nil || got.Name != "codex" || got.Binary != "/bin/codex" {
		t.Errorf("%v", got)
	}
	if got := Find(func(string) (string, error) { return "", os.ErrNotExist }); got != nil {
		t.Errorf("%v", got)
	}
}

func TestRealPathOfWhatIsGone(t *testing.T) {
	dir := t.TempDir()
	if got := proc.RealPath(filepath.Join(dir, "gone", "..", "x")); filepath.Base(got) != "x" {
		t.Errorf("got %s", got)
	}
}
