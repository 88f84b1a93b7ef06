package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

const (
	claimRefs  = "refs/tilth/claims/"
	remoteFile = "remote" // in travel/: where the session is pushed to
)

func claimRef(id string) string { return claimRefs + id }

// Claim is the holder of a session with its expiry, and a summary of the session's state at the last push.
type Claim struct {
	Session  string             `json:"session_id"`
	Holder   string             `json:"holder"` // "" when nobody works on it
	Host     string             `json:"host,omitempty"`
	Expires  string             `json:"expires,omitempty"`
	Counter  int64              `json:"counter"` // of the claim's moves
	Status   string             `json:"status"`
	Label    string             `json:"label"`
	Tasks    session.TaskCounts `json:"tasks"`
	Tokens   int64              `json:"tokens_used"`
	Cost     float64            `json:"cost"`
	LastStop string             `json:"last_stop"`
	Pushed   string             `json:"pushed"`
	State    string             `json:"state"` // the session commit
	Tip      string             `json:"tip"`   // of the branch
}

// Held reports whether somebody works on the session.
func (c Claim) Held(now time.Time) bool {
	return c.Holder != "" && now.Before(record.ParseTime(c.Expires))
}

// HeldError says that another one works on a session.
type HeldError struct{ Claim Claim }

func (e *HeldError) Error() string {
	return fmt.Sprintf("session %s is held by %s until %s", e.Claim.Session, text.VisibleLine(e.Claim.Host),
		text.VisibleLine(e.Claim.Expires))
}

// ErrBehind says that the remote has a later state of the session than this machine has seen.
var ErrBehind = errors.New("the remote has a later state of the session than this machine")

// ErrLost says that another one has taken the claim.
var ErrLost = errors.New("claim_lost")

// parseClaim reads the message of a claim commit.
func parseClaim(id, message string) (c Claim, ok bool) {
	err := json.Unmarshal([]byte(message), &c)
	return c, err == nil && c.Session == id && text.IsObjectID(c.State) && text.IsObjectID(c.Tip)
}

// Remotes are the sessions of a remote, newest first.
func (p Remote) Remotes(ctx context.Context) ([]Claim, error) {
	scratch, err := p.stage()
	if err != nil {
		return nil, err
	}
	defer scratch.remove()
	if err := scratch.fetch(ctx, "+"+claimRefs+"*:"+claimRefs+"*"); err != nil {
		return nil, err
	}
	found, err := scratch.messages(ctx, claimRefs)
	var claims []Claim
	for _, ref := range slices.Backward(slices.Sorted(maps.Keys(found))) {
		id := strings.TrimPrefix(ref, claimRefs)
		if c, ok := parseClaim(id, found[ref]); ok && session.ValidID(id) {
			claims = append(claims, c)
		}
	}
	return claims, err
}

// look reads the claim that the remote has now; at is its commit, "" for none.
func (p Remote) look(ctx context.Context, scratch *scratchRepo, id string) (c Claim, at string, err error) {
	if err := scratch.setRef(claimRef(id), ""); err != nil { // or one that is gone there would stay
		return c, "", err
	}
	// A pattern, since a ref that is not there may be asked for only so.
	if err := scratch.fetch(ctx, "+"+claimRef(id)+"*:"+claimRef(id)+"*"); err != nil {
		return c, "", err
	}
	found, err := scratch.messages(ctx, claimRef(id))
	if err != nil || len(found) == 0 {
		return c, "", err
	}
	c, ok := parseClaim(id, found[claimRef(id)])
	if !ok {
		return c, "", p.broken(id, "reading "+claimRef(id), "the remote's claim cannot be read")
	}
	return c, scratch.ref(claimRef(id)), nil
}

// broken returns the error for a remote session that cannot be read. Without its claim, the next push replaces it.
func (p Remote) broken(id, step, why string) error {
	return &held.StepError{Step: step, Err: errors.New(why),
		Hint: "git push " + text.ShellQuote(p.Shown()) + " --delete " + claimRef(id) + " && git tilth push " + id}
}

// Fetch makes the remote's session one of this machine; in a dry run it is nil.
func (p Remote) Fetch(ctx context.Context, id string) (*session.Session, error) {
	scratch, err := p.stage()
	if err != nil {
		return nil, err
	}
	defer scratch.remove()
	c, at, err := p.look(ctx, scratch, id)
	if err == nil && at == "" {
		err = &held.RefusedError{Why: "the remote has no session " + id, Hint: "git tilth list --remote"}
	}
	if err != nil {
		return nil, err
	}
	if c.Held(p.Deps.Now()) {
		return nil, &HeldError{c}
	}
	return p.fetch(ctx, scratch, id, false)
}

func (p Remote) fetch(ctx context.Context, scratch *scratchRepo, id string, force bool) (*session.Session, error) {
	if err := scratch.fetch(ctx, "+"+sessionRef(id)+"*:"+sessionRef(id)+"*"); err != nil {
		return nil, err
	}
	state := scratch.ref(sessionRef(id))
	if state == "" {
		return nil, p.broken(id, "reading "+sessionRef(id), "the remote has a claim but no state of it")
	}
	if s := p.at(id, state); s != nil && force {
		return s, nil // it was worked on here since it was listed
	}
	if err := p.note(scratch); err != nil {
		return nil, err
	}
	return p.arrive(ctx, scratch, id, force)
}

// note writes down where the session of a scratch repository is pushed to.
func (p Remote) note(scratch *scratchRepo) error {
	return jsonl.WriteFile(filepath.Join(scratch.dir, remoteFile), []byte(p.Remote+"\n"))
}

// RemoteOf is the remote of a session that was pushed or fetched, "" for none.
func RemoteOf(s *session.Session) string {
	name, _ := os.ReadFile(s.Path(session.TravelDir, remoteFile))
	return strings.TrimSpace(string(name))
}

// Push brings the state of a session that nobody works on to the remote.
func (p Remote) Push(ctx context.Context, s *session.Session) error {
	l, err := p.lease(ctx, s, time.Minute)
	if err != nil {
		return err
	}
	defer l.w.scratch.remove()
	// A remote that answers is where the session belongs from here on: a kill may come right after the push.
	if err := l.look(ctx); err != nil {
		return err
	}
	before := p
	before.Remote = RemoteOf(s)
	if err := p.note(l.w.scratch); err != nil {
		return err
	}
	err = l.push(ctx, true, true)
	if err != nil {
		// One that refused, and has nothing of the session, must not keep it from running here.
		if _, at, unread := p.look(ctx, l.w.scratch, s.ID); unread == nil && at == "" {
			return errors.Join(err, before.note(l.w.scratch))
		}
	}
	return err
}

// facts fills in how the session stands.
func (c *Claim) facts(s *session.Session, now time.Time) {
	o := s.Overview()
	c.Session, c.Status, c.Label, c.Tasks = s.ID, o.Status, o.Label, o.Tasks
	c.Tokens, c.Cost, c.LastStop, c.Pushed = o.TokensUsed, o.Cost, o.LastStop, record.FormatTime(now)
}

// write writes a claim commit.
func (c Claim) write(s *scratchRepo) (string, error) {
	message, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return "", err
	}
	tree, err := s.write("tree", nil)
	if err != nil {
		return "", err
	}
	return writeCommit(s, tree, message)
}

// Bring makes the remote's session one of this machine. A local copy stays if the remote has nothing newer; else it is
// replaced, with unpushed work of a run here, because work continued from the last pushed state. It refuses to replace
// unpushed decisions or changes of the user. In a dry run it returns nil for a session that would come.
func (p Remote) Bring(ctx context.Context, c Claim) (*session.Session, error) {
	if s := p.at(c.Session, c.State); s != nil {
		return s, nil
	}
	scratch, err := p.stage()
	if err != nil {
		return nil, err
	}
	defer scratch.remove()
	return p.fetch(ctx, scratch, c.Session, true)
}

// at returns this machine's session with that state as its last push or fetch, or nil. It opens no file of a session
// that another process may be pushing.
func (p Remote) at(id, state string) *session.Session {
	s, err := p.Store.Find(id)
	if err != nil || held.Resetting(s) {
		return nil
	}
	if here := (&scratchRepo{dir: s.Path(session.TravelDir)}); here.ref(sessionRef(id)) != state {
		return nil
	}
	return s
}

// changedByHand reports whether a person marked a task of a session or took it back after its last push or fetch, or
// changed its files since it was left, as far as that can be told.
func (p Remote) changedByHand(ctx context.Context, s *session.Session) (changed bool) {
	check, unknown := s.Checkpoint()
	if unknown == nil {
		var common string
		if common, unknown = held.CommonOf(s, check); unknown == nil {
			p.Location.CommonDir = common // of another clone, maybe
		}
	}
	scratch, err := p.scratch(ctx, s)
	if err != nil {
		return false
	}
	defer scratch.remove()
	var pushed int64
	if last, err := readForeign(ctx, scratch, s.ID, ownState); err == nil {
		for _, chunk := range last.files[session.RecordFile] {
			pushed += chunk.Size
		}
	}
	_, _, _ = record.Scan(s.Path(session.RecordFile), pushed, func(l record.Line) error {
		switch l.Type {
		case "task_marked", "session_rewound", "session_undone":
			changed = true
			return jsonl.ErrStop
		}
		return nil
	})
	return changed || unknown == nil && (&writer{s: s, scratch: scratch}).edited(ctx)
}
