package loop

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// A change that conflicts with other tasks' changes returns to its worker. This file has the messages to the worker.
// Its checks keep the change from a review until the conflict is resolved.

// maxConflicts is the number of conflicts after which a task continues alone.
const maxConflicts = 2

// dropped lists the changed files of which the merge kept only the branch's version, because git cannot merge them
// line by line.
func (a *attempt) dropped(ctx context.Context, wt gitx.Worktree, e *record.LaneMerged) (files []string, err error) {
	changed, err := a.run.Git.Paths(ctx, wt, e.From, e.Was)
	if err != nil {
		return nil, err
	}
	merged, err := a.run.Git.Paths(ctx, wt, e.Base, e.Tree)
	for _, f := range e.Conflicts {
		if slices.Contains(changed, f) && !slices.Contains(merged, f) {
			files = append(files, f)
		}
	}
	return files, err
}

// conflict returns the message to the worker about a conflicting merge.
func (a *attempt) conflict(ctx context.Context, dropped []string) (string, error) {
	news, err := a.news(ctx)
	if err != nil {
		return "", err
	}
	if a.iter >= a.limit() {
		a.extra++
	}
	sides, err := a.sides(ctx, dropped, news)
	return "While you worked, other tasks were committed, and your change conflicts with theirs. Your " +
		"working tree holds the merge, with conflict markers where lines conflict, in these files: " +
		strings.Join(quoted(a.otherLanes.merged.Conflicts), ", ") + ". Keep the purpose of both sides, remove the " +
		"markers, and submit again.\n\n" + sides, err
}

// sides returns git's messages about a conflict and the other tasks' changes. news lists the commits of these tasks.
func (a *attempt) sides(ctx context.Context, dropped []string, news string) (string, error) {
	m := a.otherLanes.merged
	diff, _, err := a.run.Git.Diff(ctx, a.run.Common, m.From, m.Base, testsCap, m.Conflicts...)
	if err != nil {
		return "", err
	}
	said := "Git's messages, in which " + m.OtherSide() + " is their version and " + m.Marker + " is yours:\n\n" +
		fenced("merge", m.Said)
	if dropped != nil {
		said += "\n\nGit cannot merge these files, so they have the other tasks' version: " +
			strings.Join(quoted(dropped), ", ") + ". Repeat your change in them; your version is in git, as " +
			m.Was + ":<file>."
	}
	return said + "\n\nThe other tasks, with the files that they changed:\n\n" + fenced("changed", news) +
		"\n\nTheir changes to the files that conflict:\n\n" +
		fenced("others", strings.ToValidUTF8(string(diff), "\uFFFD")), nil
}

// conflictLeft returns the message about an earlier unresolved conflict, for a worker that may not have seen it. It
// leaves out objects that git no longer has, for example after a rewind.
func (a *attempt) conflictLeft(ctx context.Context, wt gitx.Worktree) string {
	said, m := a.markersLeft(), a.otherLanes.merged
	if m == nil || m.Marker == "" {
		return said
	}
	dropped, err := a.dropped(ctx, wt, m)
	if err != nil || said == "" && dropped == nil {
		return said
	}
	news, err := a.changes(ctx, m.From)
	if err != nil {
		return said
	}
	sides, _ := a.sides(ctx, dropped, news)
	return strings.TrimSpace(said + "\n\n" + sides)
}

// markersLeft returns the message about conflict markers of the last merge that remain in files.
func (a *attempt) markersLeft() string {
	m := a.otherLanes.merged
	if m == nil || m.Marker == "" {
		return ""
	}
	var in []string
	for _, f := range m.Conflicts {
		for _, side := range []string{m.OtherSide(), m.Marker} { // git adds one of them if two files need the same path
			if _, err := os.Lstat(filepath.Join(a.at.path, filepath.FromSlash(f)+"~"+side)); err == nil {
				in = append(in, f+"~"+side)
			}
		}
		data, err := jsonl.ReadIn(a.at.path, filepath.FromSlash(f), maxText)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(data) {
			if bytes.HasPrefix(line, []byte(">>>>>>> "+m.Marker)) ||
				bytes.HasPrefix(line, []byte("<<<<<<< "+m.OtherSide())) {
				in = append(in, f)
				break
			}
		}
	}
	if in == nil {
		return ""
	}
	return "Conflict markers of the merge with other tasks' work are still in " + strings.Join(quoted(in), ", ") +
		". Combine both sides there, remove the markers, also from file names, and submit again."
}

// unresolved keeps a change with such markers from validation and review. The record has it as a failed validator.
func (a *attempt) unresolved() (string, error) {
	said := a.markersLeft()
	if said == "" {
		return "", nil
	}
	j := &judged{report: validator.Report{Results: []validator.Result{{Name: "merge", Output: said}}}}
	if err := a.recordValidators(j); err != nil {
		return "", err
	}
	return said, a.countObjection("merge: "+said, "merge", said, a.retryHint)
}
