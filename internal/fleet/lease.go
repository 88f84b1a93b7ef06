package fleet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Container engines kill a machine ten seconds after their signal.
const (
	releaseTime  = 8 * time.Second // time limit for the last push of a run
	releaseLeast = 3 * time.Second // the same, if ending the processes took most of the time
)

// Lease is a claim that this process has, or had.
type Lease struct {
	place   Remote
	w       *writer
	lasts   time.Duration
	holder  string
	say     func(line string)
	expires atomic.Int64 // UnixNano: a machine that slept finds the lease over
	told    atomic.Int64 // UnixNano: when the run was told to stop
	lost    atomic.Bool
	cancel  context.CancelCauseFunc
	renewed sync.WaitGroup
	stop    context.CancelFunc

	mu    sync.Mutex
	claim Claim  // claim on the remote
	at    string // commit of the claim
	away  bool   // the remote could not be reached
}

// lease returns the claim of a session that is here, not taken yet.
func (p Remote) lease(ctx context.Context, s *session.Session, lasts time.Duration) (*Lease, error) {
	scratch, err := p.scratch(ctx, s)
	if err != nil {
		return nil, err
	}
	// Only the holder of the session's lock can hold its claim by this name, so a claim left by a kill or by an
	// unreachable remote is its own.
	holder, err := os.ReadFile(s.Path(session.TravelDir, "holder"))
	if err != nil {
		holder = []byte(uuid.NewString())
		err = jsonl.WriteFile(filepath.Join(scratch.dir, "holder"), holder)
	}
	return &Lease{place: p, w: &writer{s: s, scratch: scratch}, lasts: lasts, holder: string(holder),
		say: func(string) {}}, err
}

// Take claims a local session, pushes its state, and keeps the claim until Release. The returned context ends with the
// cause ErrLost if another machine takes the claim. say gets a line if the remote cannot be reached. In a dry run there
// is no lease.
func (p Remote) Take(ctx context.Context, s *session.Session, lasts time.Duration, say func(string)) (context.Context,
	*Lease, error) {
	l, err := p.lease(ctx, s, lasts)
	if err != nil {
		return ctx, nil, err
	}
	defer l.w.scratch.remove()
	l.say = say
	if err := l.look(ctx); err != nil {
		return ctx, nil, err
	}
	l.w.begins = true
	if err := l.push(ctx, true, false); err != nil || p.Deps.Git.IsDryRun() {
		return ctx, nil, err
	}
	context.AfterFunc(ctx, func() { l.told.Store(time.Now().UnixNano()) })
	ctx, l.cancel = context.WithCancelCause(ctx)
	renewing, stop := context.WithCancel(ctx)
	l.stop = stop
	l.renewed.Go(func() { l.renew(ctx, renewing.Done()) })
	return ctx, l, nil
}

// look reads the remote's claim. It fails if another machine holds the claim, or if the remote has a state that this
// machine has not seen.
func (l *Lease) look(ctx context.Context) (err error) {
	l.claim, l.at, err = l.place.look(ctx, l.w.scratch, l.w.s.ID)
	switch {
	case err != nil:
		return err
	case l.claim.Holder != l.holder && l.claim.Held(l.place.Deps.Now()):
		return &ClaimedError{l.claim}
	case l.at == "":
		return nil
	}
	// The remote may have the last state that was written here, even if the process that pushed it was killed. A
	// remote may have been restored to an earlier state. If this machine's state descends from that, nothing is lost.
	own := l.w.scratch.last(l.w.s.ID)
	knows := func(state string) bool {
		return own != "" && (own == state || l.w.scratch.reaches(ctx, own, state))
	}
	if knows(l.claim.State) {
		return nil
	}
	// A push that died may have moved the claim and not the state: the state counts.
	if there, err := l.w.scratch.remoteRef(ctx, sessionRef(l.w.s.ID)); err != nil || knows(there) {
		return err
	}
	return ErrBehind
}

// renew repeatedly pushes the session with a later expiry. A push in progress at the end is completed.
func (l *Lease) renew(ctx context.Context, end <-chan struct{}) {
	tick := time.NewTicker(l.lasts / 3)
	defer tick.Stop()
	for {
		select {
		case <-end:
			return
		case <-tick.C:
			l.Progress(ctx)
		}
	}
}

// Progress pushes the state of the session. It reports an unreachable remote once, and retries later.
func (l *Lease) Progress(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, max(l.lasts/2, releaseTime))
	defer cancel()
	err := l.push(ctx, false, false)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case errors.Is(err, ErrLost) || errors.Is(ctx.Err(), context.Canceled):
	case err != nil && !l.away:
		l.away = true
		l.say("cannot be pushed now, retrying later: " + text.OneLine(err.Error()))
	case err == nil && l.away:
		l.away = false
		l.say("can be pushed again")
	}
}

// Check runs before costly steps. A process that slept past its lease renews it first, and learns whether another
// machine has taken it.
func (l *Lease) Check(ctx context.Context) {
	if !l.lost.Load() && time.Now().UnixNano() >= l.expires.Load() {
		l.Progress(ctx)
	}
}

// Lost reports whether another machine has taken the claim.
func (l *Lease) Lost() bool { return l.lost.Load() }

// Release pushes the final state of the session without a holder. The error is ErrLost if another machine has the
// claim; other errors were reported.
func (l *Lease) Release(ctx context.Context) error {
	l.stop()
	cut := time.AfterFunc(releaseTime, func() { l.cancel(nil) })
	l.renewed.Wait()
	cut.Stop()
	left := releaseTime
	if told := l.told.Load(); told != 0 {
		left = max(left-time.Since(time.Unix(0, told)), releaseLeast)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), left)
	defer cancel()
	l.w.begins = false
	err := l.push(ctx, true, true)
	if err != nil && !errors.Is(err, ErrLost) {
		l.say("could not be pushed at its end; run git tilth push " + l.w.s.ID + ": " + text.OneLine(err.Error()))
	}
	return err
}

// push moves branch, state and claim on the remote together, usually with one git process. idle means that no run works
// on the session, release that none will.
func (l *Lease) push(ctx context.Context, idle, release bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost.Load() {
		return ErrLost
	}
	id := l.w.s.ID
	state, st, err := l.w.commit(ctx, idle)
	if err == nil && release {
		err = l.w.noteLeft(st.Files)
	}
	if err != nil {
		return err
	}
	now := l.place.Deps.Now()
	next := Claim{Counter: l.claim.Counter + 1, State: state, Tip: st.Tip}
	next.facts(l.w.s, now)
	if !release {
		next.Holder, next.Expires = l.holder, record.FormatTime(now.Add(l.lasts))
		next.Host, _ = os.Hostname()
	}
	to, err := l.move(ctx, &next)
	if err != nil {
		return err
	}
	l.claim, l.at = next, to
	l.expires.Store(now.Add(l.lasts).UnixNano())
	return errors.Join(l.w.scratch.setRef(sessionRef(id), state), l.w.scratch.setRef(claimRef(id), to))
}

// move pushes and returns the claim's commit. After a failure it reads the remote's claim: another machine has taken
// it, or the answer to a push was lost, or the remote has lost the claim. In all other cases somebody pushed a commit
// to the branch, and move continues from it if that loses nothing.
func (l *Lease) move(ctx context.Context, next *Claim) (to string, err error) {
	id := l.w.s.ID
	leases := []string{branchRef(id) + ":" + l.claim.Tip}
	var failed error
	for range 2 {
		if to, err = next.write(ctx, l.w.scratch); err != nil {
			return "", err
		}
		failed = l.w.scratch.push(ctx, append(leases, claimRef(id)+":"+l.at), []string{next.Tip + ":" + branchRef(id),
			"+" + next.State + ":" + sessionRef(id), to + ":" + claimRef(id)})
		if failed == nil || ctx.Err() != nil {
			return to, failed
		}
		there, at, err := l.place.look(ctx, l.w.scratch, id)
		switch {
		case err != nil:
			return "", failed
		case at == to:
			return to, nil
		// A lower counter means that the remote was restored to an earlier state.
		case at != l.at && at != "" && there.Holder != l.holder && there.Counter >= l.claim.Counter:
			l.lost.Store(true)
			if l.cancel != nil {
				l.cancel(ErrLost)
			}
			return "", ErrLost
		}
		l.at, leases = at, nil
		next.Counter = max(next.Counter, there.Counter+1) // after an own push with a lost answer
	}
	return "", l.inTheWay(ctx, next.Tip, failed)
}

// inTheWay returns the reason of a failed push: a foreign branch with the session's name, or git's error.
func (l *Lease) inTheWay(ctx context.Context, tip string, failed error) error {
	const theirs = "refs/tilth/theirs"
	branch := branchRef(l.w.s.ID)
	err := l.w.scratch.fetch(ctx, "+"+branch+":"+theirs)
	if err != nil || l.w.scratch.reaches(ctx, tip, l.w.scratch.ref(theirs)) {
		return failed
	}
	return &held.StepError{Step: "pushing session " + l.w.s.ID,
		Err: errors.New("the remote's " + branch + " has commits that the session does not have; deleting it loses " +
			"them"),
		Hint: "git push " + text.ShellQuote(l.place.Shown()) + " --delete " + branch}
}
