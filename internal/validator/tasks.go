package validator

import (
	"path"
	"slices"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// taskName finds a task in a base name: t and three or more digits, between separators or at an end.
var taskName = pattern.New(`(?i)(?:^|[^0-9a-z])t(\d{3,})(?:$|[^0-9a-z])`)

// TaskOf returns the task of an acceptance test by its base name: test_t001_add.py belongs to T-001.
func TaskOf(basename string) (id string, ok bool) {
	m := taskName().FindStringSubmatch(basename)
	if m == nil {
		return "", false
	}
	return "T-" + m[1], true
}

// AcceptanceTests returns the files (paths) that are acceptance tests of a task, sorted.
func AcceptanceTests(files []string, id string) []string {
	out, _, _ := Tasks{Current: id}.split(files)
	slices.Sort(out)
	return out
}

// Tasks selects the acceptance tests that must pass.
type Tasks struct {
	// Current is the task being judged, Done are the finished tasks. Their acceptance tests must pass. The tests of the
	// other tasks in All are left out.
	Current string
	Done    []string
	All     []string
	// Seed are the test files of the seed, relative to the worktree. An older feature's test may have the number of one
	// of these tasks. With nil, every file with a task in its name counts as the seed's.
	Seed []string
	// Changed are the files of the change; nil checks all packages.
	Changed []string
	// Base are the names of the checks that ran on the base. A change that adds other tests replaces none of them.
	Base []string
}

// split divides sorted files into the acceptance tests of the current task, of finished tasks and of later tasks.
func (t Tasks) split(files []string) (current, done, later []string) {
	if t.Seed != nil {
		// The seed has few files, and only these can be its tests.
		files = slices.DeleteFunc(slices.Clone(t.Seed), func(f string) bool {
			_, there := slices.BinarySearch(files, f)
			return !there
		})
		slices.Sort(files)
	}
	for _, f := range files {
		id, ok := TaskOf(path.Base(f))
		if !ok {
			continue
		}
		switch {
		case id == t.Current:
			current = append(current, f)
		case slices.Contains(t.Done, id):
			done = append(done, f)
		case slices.Contains(t.All, id):
			later = append(later, f)
		}
	}
	return current, done, later
}
