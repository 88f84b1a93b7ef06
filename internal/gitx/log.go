package gitx

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// Commit is one commit of a branch.
type Commit struct {
	SHA, Tree     string
	Parents       []string
	Subject, Body string // Body includes the trailers
	AuthorName    string
	Trailers      map[string][]string // values by key, in order
	Time          time.Time           // of the commit, not of its authoring
}

// commitFormat lists the fields of a Commit, each ended by NUL.
const commitFormat = "%H%x00%T%x00%P%x00%ct%x00%an%x00%s%x00%b%x00%(trailers:only,unfold)%x00"

const commitFields = 8

// Log returns the commits from tip back along first parents, newest first,
// without those that exclude reaches (none if it is "") and at most max of them
// (all if it is 0).
func (g *Git) Log(ctx context.Context, common, tip, exclude string, max int) ([]Commit, error) {
	args := []string{"rev-list", "--first-parent", "--no-commit-header", "--encoding=UTF-8", "--format=" + commitFormat}
	if max > 0 {
		args = append(args, "--max-count="+strconv.Itoa(max))
	}
	args = append(args, "--end-of-options", tip)
	if exclude != "" {
		args = append(args, "^"+exclude)
	}
	out, err := g.read(ctx, inRepo(common, append(args, "--")...))
	if err != nil {
		return nil, err
	}
	return parseCommits(string(out)), nil
}

// parseCommits reads records of commitFormat. A newline follows each record.
func parseCommits(out string) []Commit {
	var commits []Commit
	f := strings.Split(out, "\x00")
	for ; len(f) > commitFields; f = f[commitFields:] {
		seconds, _ := strconv.ParseInt(f[3], 10, 64)
		commits = append(commits, Commit{
			SHA:        strings.TrimPrefix(f[0], "\n"),
			Tree:       f[1],
			Parents:    strings.Fields(f[2]),
			Time:       time.Unix(seconds, 0),
			AuthorName: f[4],
			Subject:    f[5],
			Body:       strings.TrimRight(f[6], "\n"),
			Trailers:   parseTrailers(f[7]),
		})
	}
	return commits
}

func parseTrailers(s string) map[string][]string {
	trailers := map[string][]string{}
	for line := range strings.Lines(s) {
		if key, value, ok := strings.Cut(line, ":"); ok {
			key = strings.TrimSpace(key)
			trailers[key] = append(trailers[key], strings.TrimSpace(value))
		}
	}
	return trailers
}

// WorkerCommits returns the commits that reached the branch through a program
// that ran with Environ, going by the branch's reflog.
func (g *Git) WorkerCommits(ctx context.Context, common, branch string) (map[string]bool, error) {
	// Only git log shows what the reflog says (%gs); rev-list leaves it empty.
	out, err := g.read(ctx, inRepo(common, "log", "--walk-reflogs", "--no-show-signature", "--no-patch", "--no-color",
		"--format=%H%x00%gs%x00", "refs/heads/"+branch, "--"))
	if err != nil {
		return nil, err
	}
	workers := map[string]bool{}
	f := strings.Split(string(out), "\x00")
	for ; len(f) > 2; f = f[2:] {
		// rebase and cherry-pick append to the action: "tilth-worker (pick): ...".
		if strings.HasPrefix(f[1], reflogWorker) {
			workers[strings.TrimPrefix(f[0], "\n")] = true
		}
	}
	return workers, nil
}
