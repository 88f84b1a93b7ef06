package take

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// OnlyOn lists the commits that are reachable from tip and, apart from branch, from no branch, tag or remote branch.
// They are lost if branch is deleted.
func OnlyOn(ctx context.Context, g *gitx.Git, common, tip, branch string) ([]string, error) {
	out, err := g.Line(ctx, gitx.InRepo(common, "rev-list", tip, "--not", "--exclude="+branch, "--branches", "--tags",
		"--remotes"))
	return strings.Fields(out), err
}

// FindElsewhere fills in facts of sessions that only their repository knows: whether worktree and branch are deleted
// (Cleansed), and whether all finished work is on another branch, a tag or a remote branch (Taken). It runs git at
// most four times for any number of sessions. Unknown facts stay unset.
func FindElsewhere(ctx context.Context, g *gitx.Git, common string, all []*session.Overview) {
	var asked []*session.Overview
	for _, o := range all {
		if o.Busy == nil && !o.Resetting && o.Tasks.Total > 0 && (o.Finished() || !o.HasWorktree) {
			asked = append(asked, o)
		}
	}
	if len(asked) == 0 {
		return
	}
	tips, err := g.Refs(ctx, common, "refs/heads/")
	if err != nil {
		return
	}
	notes, ends := map[string][]Taken{}, []string{}
	for _, o := range asked {
		tip := tips["refs/heads/"+o.Branch]
		o.Cleansed = tip == "" && !o.HasWorktree
		if tip == "" || !o.Finished() {
			continue
		}
		ends = append(ends, tip)
		notes[o.ID] = takenNotes(&session.Session{ID: o.ID, Dir: o.Dir})
		for _, n := range notes[o.ID] {
			ends = append(ends, n.To)
		}
	}
	if len(ends) == 0 {
		return
	}
	own := []string{usualBranches}
	for _, o := range all {
		if o.Branch != session.DefaultBranch(o.ID) {
			own = append(own, o.Branch)
		}
	}
	here, err := onlyHere(ctx, g, common, ends, own...)
	if err != nil {
		return
	}
	for _, o := range asked {
		if tip := tips["refs/heads/"+o.Branch]; tip != "" && o.Finished() {
			left := here.left(tip, notes[o.ID])
			if len(left) == 1 { // the records of the others are not read
				left = butSeed(&session.Session{ID: o.ID, Dir: o.Dir}, left)
			}
			o.Taken = len(left) == 0 || o.Request != nil && o.Request.Merged(tip)
		}
	}
}

// onlyHereCommits are commits that no other branch, tag or remote branch has, with their parents.
type onlyHereCommits map[string][]string

// usualBranches are the default branches of sessions.
const usualBranches = "session/*"

// onlyHere finds the commits below ends that only the branches in but reach. A commit that the repository lacks is
// unknown.
func onlyHere(ctx context.Context, g *gitx.Git, common string, ends []string, but ...string) (onlyHereCommits, error) {
	ask := gitx.InRepo(common, "cat-file", "--batch-check=%(objectname)")
	ask.Stdin = []byte(strings.Join(ends, "\n") + "\n")
	out, err := g.Read(ctx, ask)
	if err != nil {
		return nil, err
	}
	only, there := onlyHereCommits{}, []string{}
	for line := range strings.Lines(string(out)) {
		if sha, rest, _ := strings.Cut(strings.TrimSpace(line), " "); rest == "" {
			there = append(there, sha)
		} else {
			only[sha] = nil // missing
		}
	}
	args := []string{"rev-list", "--parents", "--stdin"}
	for _, pattern := range but {
		args = append(args, "--exclude="+pattern)
	}
	ask = gitx.InRepo(common, append(args, "--not", "--branches", "--tags", "--remotes")...)
	ask.Stdin = []byte(strings.Join(there, "\n") + "\n")
	if out, err = g.Read(ctx, ask); err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		shas := strings.Fields(line)
		only[shas[0]] = shas[1:]
	}
	return only, nil
}

// left returns the commits of a session that no other branch has, unchanged or as taken, newest first.
func (only onlyHereCommits) left(tip string, notes []Taken) (left []string) {
	taken, seen := map[string]bool{}, map[string]bool{}
	for _, n := range notes {
		if _, gone := only[n.To]; gone {
			continue // it was discarded
		}
		for _, sha := range n.Tasks {
			taken[sha] = true
		}
	}
	for next := []string{tip}; len(next) > 0; next = next[1:] {
		sha := next[0]
		parents, here := only[sha]
		if !here || seen[sha] {
			continue
		}
		seen[sha] = true
		if !taken[sha] {
			left = append(left, sha)
		}
		next = append(next, parents...)
	}
	return left
}

// butSeed removes the seed's commit, which need not be taken.
func butSeed(s *session.Session, commits []string) []string {
	seed, _ := held.SeedOf(s)
	return slices.DeleteFunc(commits, func(sha string) bool { return seed != "" && strings.HasPrefix(sha, seed) })
}

// Commits returns the taken commits of a session, each with the branch of its last take. A commit that was removed
// from that branch does not count.
func Commits(ctx context.Context, g *gitx.Git, common string, s *session.Session) map[string]string {
	notes, ends := takenNotes(s), []string{}
	for _, n := range notes {
		ends = append(ends, n.To)
	}
	if len(ends) == 0 {
		return nil
	}
	taken := map[string]string{}
	here, err := onlyHere(ctx, g, common, ends, usualBranches, s.Branch())
	for _, n := range slices.Backward(notes) {
		if _, gone := here[n.To]; !gone && err == nil {
			for _, sha := range n.Tasks {
				taken[sha] = n.Onto
			}
		}
	}
	return taken
}

// takenNotes returns the takes of a session, newest first.
func takenNotes(s *session.Session) (notes []Taken) {
	_, _ = jsonl.Tail(s.Path(takenFile), func(_ int64, line []byte) bool {
		var t Taken
		if json.Unmarshal(line, &t) == nil {
			notes = append(notes, t)
		}
		return true
	})
	return notes
}

// Lost returns the commits of a session that are lost if its branch, at tip, is deleted: no other ref has them, and
// they were not taken.
func Lost(ctx context.Context, g *gitx.Git, common string, s *session.Session, tip, branch string) (names []string,
	err error) {
	if tip == "" {
		return nil, nil
	}
	notes, ends := takenNotes(s), []string{tip}
	for _, n := range notes {
		ends = append(ends, n.To)
	}
	only, err := onlyHere(ctx, g, common, ends, branch)
	if err != nil {
		return nil, err
	}
	for _, sha := range slices.Backward(butSeed(s, only.left(tip, notes))) {
		commits, err := g.Log(ctx, common, sha, "", 1)
		if err != nil {
			return nil, err
		}
		for _, c := range commits {
			names = append(names, fmt.Sprintf("%s (%s)", text.Head(sha, 10), text.Clip(text.OneLine(c.Subject), 60)))
		}
	}
	return names, nil
}
