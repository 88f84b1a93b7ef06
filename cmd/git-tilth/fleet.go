package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/fleet"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

func remoteFlag() cli.Flag {
	return &cli.StringFlag{Name: "remote",
		Usage: "the remote `NAME` or a path (default: the session's remote, else the only remote, else origin)"}
}

// fleetCommands returns the commands that move sessions between machines.
func (p *process) fleetCommands() []*cli.Command {
	return []*cli.Command{
		p.declare(traits{wish: "share", rare: true}, &cli.Command{
			Name:      "push",
			Usage:     "push a session to a remote, for another machine",
			ArgsUsage: "[<session>]",
			Description: "Pushes the branch, and the session as refs/tilth/sessions/<id>. The session includes the " +
				"uncommitted work of its worktree and lanes, but no ignored files. After that, run and resume " +
				"claim the session on the remote and push its progress.",
			Flags: []cli.Flag{remoteFlag()},
			Action: p.onHeld(func(ctx *cli.Context, w *repoContext, h *held.Handle) error {
				named := cmp.Or(ctx.String("remote"), fleet.RemoteOf(h.S))
				place, err := w.place(h, named)
				if err == nil {
					err = w.settleRemote(&place, named)
				}
				if err != nil {
					return err
				}
				if err = held.StashLanes(p.ctx, h); err == nil {
					err = place.Push(p.ctx, h.S)
				}
				switch {
				case err != nil:
					return fleetError(err, h.S.ID)
				case p.dryRun:
					p.printf("session %s would be pushed to %s\n", h.S.ID, place.Shown())
				default:
					p.printf("session %s is pushed to %s\n", h.S.ID, place.Shown())
				}
				return nil
			}),
		}),
		p.declare(traits{wish: "share", rare: true}, &cli.Command{
			Name:      "fetch",
			Usage:     "fetch a session from a remote",
			ArgsUsage: "[<session>]",
			Description: "Without <session>, fetches the newest session that no machine has claimed. Updates a " +
				"session that exists here, unless it has work that was not pushed.",
			Flags: []cli.Flag{remoteFlag()},
			Action: p.in(func(ctx *cli.Context, w *repoContext) error {
				named, part := ctx.String("remote"), ctx.Args().First()
				if known, err := w.Store.Find(part); err == nil {
					named = cmp.Or(named, fleet.RemoteOf(known))
				}
				place, err := w.remoteHere(named)
				if err != nil {
					return err
				}
				c, err := p.remoteSession(place, part)
				if err != nil {
					return err
				}
				s, err := place.Fetch(p.ctx, c.Session)
				if err == nil && p.dryRun {
					p.printf("session %s would be fetched from %s\n", c.Session, place.Shown())
					return nil
				}
				return p.sayMade(s, fleetError(err, c.Session))
			}),
		}),
	}
}

// sayMade prints the id of a new session on standard output, and the next command on standard error.
func (p *process) sayMade(s *session.Session, err error) error {
	if err == nil {
		p.printf("%s\n", s.ID)
		p.warnf("next: git tilth resume %s\n", s.ID)
	}
	return err
}

// inDir resolves a path that the user typed.
func (p *process) inDir(file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(p.dir, file)
}

// place returns the remote for pushing a held session.
func (w *repoContext) place(h *held.Handle, remote string) (fleet.Remote, error) {
	if h.Common == "" {
		return fleet.Remote{}, refuse("git tilth show "+h.S.ID,
			"the repository of session %s is not on this machine", h.S.ID)
	}
	place, _ := w.placeHere(cmp.Or(remote, fleet.RemoteOf(h.S))) // the command may run in another directory
	place.Location.Source, place.Location.CommonDir = h.Checkpoint.Source, h.Common
	return place, nil
}

// placeHere returns the remote in the command's repository from which sessions are fetched.
func (w *repoContext) placeHere(remote string) (fleet.Remote, error) {
	return fleet.Remote{
		Deps: w.Deps(nil), Store: w.Store, Location: w.Loc, Remote: cmp.Or(remote, "origin"),
		MaxFetch: w.Config.Count("tilth.maxFetch"),
	}, w.repo()
}

// settleRemote completes the name of a remote. Without a name it is the repository's only remote, as for git fetch. A
// path is relative to the command's directory and must be a repository.
func (w *repoContext) settleRemote(place *fleet.Remote, named string) error {
	names, err := w.Git.Line(w.p.ctx, gitx.InRepo(place.Location.CommonDir, "remote"))
	known := strings.Fields(names)
	dir := w.p.inDir(named)
	host, _, slash := strings.Cut(named, "/")
	_, missing := os.Stat(dir)
	switch {
	case err != nil:
	case named == "" && len(known) == 1:
		place.Remote = known[0]
	case len(known) == 0 && place.Remote == "origin":
		return refuse("git remote -h", "this repository has no remote (git remote add origin URL)")
	case named == "" || slices.Contains(known, named) || strings.Contains(host, ":"):
	case slash && missing != nil:
		return refuse("git init --bare "+text.ShellQuote(dir), "%s: no such directory", dir)
	case missing == nil && !isRepository(dir):
		return refuse("git init --bare "+text.ShellQuote(dir), "%s is not a git repository", dir)
	case missing == nil:
		place.Remote = dir
	}
	return nil
}

// isRepository reports whether a directory is a bare repository or a checkout.
func isRepository(dir string) bool {
	_, bare := os.Stat(filepath.Join(dir, "HEAD"))
	_, checkout := os.Stat(filepath.Join(dir, ".git"))
	return bare == nil || checkout == nil
}

// remoteHere returns a remote of the repository of the command.
func (w *repoContext) remoteHere(remote string) (fleet.Remote, error) {
	place, err := w.placeHere(remote)
	if err == nil {
		err = w.settleRemote(&place, remote)
	}
	return place, err
}

// remoteSession returns the named remote session, or the newest unclaimed one.
func (p *process) remoteSession(place fleet.Remote, part string) (found fleet.Claim, err error) {
	claims, err := place.Remotes(p.ctx)
	if err != nil {
		return found, fleetError(err, "")
	}
	if part == "" && len(claims) == 0 {
		return found, refuse("git tilth push", "the remote has no session")
	}
	var ids []string
	for _, c := range claims {
		if part == "" && !c.Held(p.now()) {
			return c, nil
		}
		if c.Session == part || len(part) >= 4 && strings.Contains(c.Session, part) {
			found = c
			ids = append(ids, c.Session)
		}
	}
	if part == "" {
		return claims[0], nil // every session is claimed
	}
	if len(ids) != 1 {
		return found, refuse("git tilth list --remote", "%d sessions of the remote match %q", len(ids), part)
	}
	return found, nil
}

// fleetError returns the error of a session that could not be pushed, fetched or claimed.
func fleetError(err error, id string) error {
	var other *fleet.ClaimedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &other):
		return &exitError{code: exitBusy, msg: other.Error(), hint: "git tilth list --remote", err: err}
	case errors.Is(err, fleet.ErrLost):
		return &exitError{code: exitBusy, msg: "claim_lost: another machine has taken session " + id,
			hint: "git tilth list --remote", err: err}
	case errors.Is(err, fleet.ErrBehind):
		return &exitError{code: exitRefused, msg: "session " + id + ": " + err.Error(),
			hint: "git tilth fetch " + id, err: err}
	case errors.As(err, new(*held.RefusedError)), errors.As(err, new(*session.BusyError)),
		errors.As(err, new(*held.StepError)), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, new(*fleet.RemoteError)) && id == "":
		return fail("git remote -v", err)
	case errors.As(err, new(*fleet.RemoteError)):
		return fail("git remote -v\ngit tilth push --remote NAME "+id, err)
	}
	return fail("git tilth doctor", err)
}

// listRemote is `git tilth list --remote`.
func (w *repoContext) listRemote(remote string, asJSON bool) error {
	p := w.p
	place, err := w.remoteHere(remote)
	if err != nil {
		return err
	}
	place.Deps.Git = w.p.git(false) // a dry run lists as well
	rows, err := w.remoteRows(p.ctx, place)
	if err != nil {
		return fleetError(err, "")
	}
	if asJSON {
		for i := range rows {
			rows[i].State = rows[i].Status
		}
		return p.printJSON(rows)
	}
	for _, r := range rows {
		stop := ""
		if r.LastStop != "" && r.LastStop != r.Status {
			stop = " (" + r.LastStop + ")"
		}
		p.printf("%s  %s%s  %d/%d  %s  %s\n", r.Session, text.VisibleLine(r.State), text.VisibleLine(stop),
			r.Tasks.Done, r.Tasks.Total, text.VisibleLine(r.Held), text.VisibleLine(r.Label))
	}
	return nil
}

// holderOf names the holder of a remote session.
func holderOf(c fleet.Claim, now time.Time) string {
	switch {
	case c.Held(now):
		return fmt.Sprintf("held by %s until %s", c.Host, c.Expires)
	case c.Holder != "":
		return "left by " + c.Host
	}
	return "free"
}

// remoteRow is a session of a remote in a list.
type remoteRow struct {
	fleet.Claim
	State     string `json:"state"` // with --json, the status
	Source    string `json:"source"`
	Branch    string `json:"branch"`
	StartedAt string `json:"started_at"`
	Held      string `json:"held"` // name of the holder, for people
	Seen      string `json:"last_event_at"`
}

func (w *repoContext) remoteRows(ctx context.Context, place fleet.Remote) ([]remoteRow, error) {
	claims, err := place.Remotes(ctx)
	rows := []remoteRow{}
	for _, c := range claims {
		o := session.Overview{Status: c.Status, LastStop: c.LastStop}
		if c.Status == session.Running && c.Held(w.p.now()) {
			o.Busy = &session.BusyError{}
		}
		begun, _ := session.IDTime(c.Session)
		rows = append(rows, remoteRow{c, o.State(), place.Shown(), "session/" + c.Session, record.FormatTime(begun),
			holderOf(c, w.p.now()), c.Pushed})
	}
	return rows, err
}

// claim claims a session on a remote for a run. The context ends when the claim is lost. release releases the claim
// and returns the command's error, given the run's; it does nothing in a dry run. For a worker of a remote
// (forRemote), a failed last push is a failure, because only the remote knows the session.
func (w *repoContext) claim(ctx *context.Context, h *held.Handle, o *loop.Options, forRemote bool) (
	release func(error) error, err error) {
	if fleet.RemoteOf(h.S) == "" {
		return func(end error) error { return end }, nil
	}
	place, err := w.place(h, "")
	if err != nil {
		return nil, err
	}
	before := *ctx
	claimed, lease, err := place.Take(before, h.S, w.Config.Duration("tilth.lease"), func(line string) {
		w.p.warnf("git-tilth: session %s %s\n", h.S.ID, text.VisibleLine(line))
	})
	if err != nil || w.p.dryRun {
		return nil, fleetError(err, h.S.ID)
	}
	*ctx, o.Lease = claimed, lease
	return func(end error) error {
		left := lease.Release(before)
		if end == nil && left != nil && (forRemote || errors.Is(left, fleet.ErrLost)) {
			return fleetError(left, h.S.ID)
		}
		return end
	}, nil
}
