// Package fleet moves sessions between machines through a git remote, and keeps each on one machine at a time. The
// machines share nothing else, and the user's repository gets no ref but the session's branch.
//
// On the remote a session is three refs, which one atomic push moves together:
//
//	refs/heads/session/<id>       the branch
//	refs/tilth/sessions/<id>      the session commit: the files of the session's directory
//	refs/tilth/claims/<id>        the claim commit: the holder, the expiry, a summary of the state
//
// The tree of the session commit has a directory for each file, which holds it in chunks of 64 KiB, 256 of them to a
// directory. The record only grows, so that a later push sends its last chunk, as a difference to the one before. The
// message is the state: the branch's tip, the commits of stashed work and, of a session that is not running, a commit
// of the uncommitted work. All of them are parents, and so is the session commit before. Ignored files, the undos,
// chat.html and generated files stay at home, and so do the ids of agent programs' conversations, because other
// machines do not have these conversations.
//
// The claim commit has no parent and no files. Its message is the [Claim]. It moves only by compare-and-swap
// (--force-with-lease), so only one of two machines can take it. The push of a state includes its claim: a machine that
// lost the claim can push nothing over the next holder's state. A released claim stays, without a holder.
//
// All objects of a push are written before it, by git fast-import, in the scratch repository travel/ of the session's
// directory, which borrows the user's objects. Its refs are the remote's refs as last seen. A kill at any moment leaves
// objects without a ref here, and on the remote either all three old refs or all three new ones. Reading the claim
// again shows whether a push with a lost answer succeeded.
//
// In a dry run a temporary scratch repository replaces this one, with its objects and refs. The remote's session is
// fetched there, so that the result is known, and refused as in a real run. The remote is asked whether it would accept
// a push. Nothing is written anywhere else.
//
// Data from a remote is untrusted. Every name, mode, size and number of files is checked before a file is written, into
// a directory that is not a session yet. Each file is parsed in its format, and paths are this machine's.
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
	remoteFile = "remote" // in travel/: the session's remote
)

func claimRef(id string) string { return claimRefs + id }

// Claim is the holder of a session with its expiry, and a summary of the session's state at the last push.
type Claim struct {
	Session  string             `json:"session_id"`
	Holder   string             `json:"holder"` // "" if the session is free
	Host     string             `json:"host,omitempty"`
	Expires  string             `json:"expires,omitempty"`
	Counter  int64              `json:"counter"` // number of the claim's renewals and takeovers
	Status   string             `json:"status"`
	Label    string             `json:"label"`
	Tasks    session.TaskCounts `json:"tasks"`
	Tokens   int64              `json:"tokens_used"`
	Cost     float64            `json:"cost"`
	LastStop string             `json:"last_stop"`
	Pushed   string             `json:"pushed"`
	State    string             `json:"state"` // the session commit
	Tip      string             `json:"tip"`   // tip of the branch
}

// Held reports whether a machine works on the session.
func (c Claim) Held(now time.Time) bool {
	return c.Holder != "" && now.Before(record.ParseTime(c.Expires))
}

// ClaimedError means that another machine has the claim of a session.
type ClaimedError struct{ Claim Claim }

func (e *ClaimedError) Error() string {
	return fmt.Sprintf("session %s is claimed by %s until %s", e.Claim.Session, text.VisibleLine(e.Claim.Host),
		text.VisibleLine(e.Claim.Expires))
}

// ErrBehind means that the remote has a later state of the session than this machine has seen.
var ErrBehind = errors.New("the remote has a later state of the session than this machine")

// ErrLost means that another machine has taken the claim.
var ErrLost = errors.New("claim_lost")

// parseClaim reads the message of a claim commit.
func parseClaim(id, message string) (c Claim, ok bool) {
	err := json.Unmarshal([]byte(message), &c)
	return c, err == nil && c.Session == id && text.IsObjectID(c.State) && text.IsObjectID(c.Tip)
}

// Remotes returns the sessions of a remote, newest first.
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
	if err := scratch.setRef(claimRef(id), ""); err != nil { // otherwise a ref that was deleted there would stay
		return c, "", err
	}
	// A pattern, because git accepts a missing ref only in that form.
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

// Fetch makes the remote's session a session of this machine. In a dry run it returns nil.
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
		return nil, &ClaimedError{c}
	}
	return p.fetch(ctx, scratch, id, false)
}

func (p Remote) fetch(ctx context.Context, scratch *scratchRepo, id string, force bool) (*session.Session, error) {
	if err := scratch.fetch(ctx, "+"+sessionRef(id)+"*:"+sessionRef(id)+"*"); err != nil {
		return nil, err
	}
	state := scratch.ref(sessionRef(id))
	if state == "" {
		return nil, p.broken(id, "reading "+sessionRef(id), "the remote has a claim but no session")
	}
	if s := p.at(id, state); s != nil && force {
		return s, nil // another command has worked on it since the list was read
	}
	if err := p.note(scratch); err != nil {
		return nil, err
	}
	return p.arrive(ctx, scratch, id, force)
}

// note stores the remote of a scratch repository's session.
func (p Remote) note(scratch *scratchRepo) error {
	return jsonl.WriteFile(filepath.Join(scratch.dir, remoteFile), []byte(p.Remote+"\n"))
}

// RemoteOf returns the remote of a session that was pushed or fetched, "" for none.
func RemoteOf(s *session.Session) string {
	name, _ := os.ReadFile(s.Path(session.TravelDir, remoteFile))
	return strings.TrimSpace(string(name))
}

// Push pushes the session to the remote and leaves it unclaimed.
func (p Remote) Push(ctx context.Context, s *session.Session) error {
	l, err := p.lease(ctx, s, time.Minute)
	if err != nil {
		return err
	}
	defer l.w.scratch.remove()
	// From here on the session belongs to the remote, because a kill may follow right after the push.
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
		// A remote that refused, and has no state of the session, must not keep it from running here.
		if _, at, unread := p.look(ctx, l.w.scratch, s.ID); unread == nil && at == "" {
			return errors.Join(err, before.note(l.w.scratch))
		}
	}
	return err
}

// facts fills in the state of the session.
func (c *Claim) facts(s *session.Session, now time.Time) {
	o := s.Overview()
	c.Session, c.Status, c.Label, c.Tasks = s.ID, o.Status, o.Label, o.Tasks
	c.Tokens, c.Cost, c.LastStop, c.Pushed = o.TokensUsed, o.Cost, o.LastStop, record.FormatTime(now)
}

// write writes a claim commit.
func (c Claim) write(ctx context.Context, s *scratchRepo) (string, error) {
	message, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return "", err
	}
	tree, err := s.write(ctx, "tree", nil)
	if err != nil {
		return "", err
	}
	return s.writeCommit(ctx, tree, string(message))
}

// Bring makes the remote's session a session of this machine. It keeps a local copy if the remote has nothing newer.
// Otherwise it replaces the copy, also unpushed work of a run here, because another machine continued from the last
// pushed state. It refuses to replace unpushed decisions or changes of the user. In a dry run it returns nil for a
// session that it would fetch.
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

// changedByUser reports whether the user changed a session: marked a task, rewound or undid after its last push or
// fetch, or edited its files after its last run. It ignores changes that it cannot read.
func (p Remote) changedByUser(ctx context.Context, s *session.Session) (changed bool) {
	check, unknown := s.Checkpoint()
	if unknown == nil {
		var common string
		if common, unknown = held.CommonOf(s, check); unknown == nil {
			p.Location.CommonDir = common // possibly of another clone
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

// Next returns the session for a worker: the oldest runnable one that has no holder and that skip does not exclude. If
// several workers choose at the same time, only one wins. After each loss a worker chooses among twice as many
// sessions. waiting reports whether a runnable session has a holder that may release it.
func Next(claims []Claim, now time.Time, lost int, pick func(n int) int, skip func(id string) bool) (c Claim, found,
	waiting bool) {
	var free []Claim
	most := 1 << min(lost, 16)
	for _, c := range slices.Backward(claims) {
		if skip(c.Session) || c.Status != session.Prepared && c.Status != session.Running {
			continue
		}
		if c.Held(now) {
			waiting = true
		} else if free = append(free, c); len(free) == most {
			break
		}
	}
	if len(free) == 0 {
		return c, false, waiting
	}
	return free[pick(len(free))], true, waiting
}

// Pause returns the wait before a worker checks the remote again: about a third of the lease if no session is free; a
// moment after a lost race, doubled after each. chance, from 0 to 1, spreads the workers.
func Pause(lease time.Duration, lost int, chance float64) time.Duration {
	d := lease / 3
	if lost > 0 {
		d = min(d, 50*time.Millisecond<<min(lost, 16))
	}
	return d/2 + time.Duration(chance*float64(d))
}
