package validator

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/packages"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Known are failures from before any work: failing tests by the check that runs them. A check that reports no test
// names is known as a whole.
type Known map[string][]string

// keyOf returns the key of a check in Known, the same for a suite without its acceptance tests.
func keyOf(name string) string { return strings.TrimSuffix(name, rest("")) }

// SameCheck reports whether two checks run the same suite.
func SameCheck(a, b string) bool { return keyOf(a) == keyOf(b) }

// failing returns the names of the tests that failed.
func (r Result) failing() []string {
	if r.Tests == nil {
		return nil
	}
	return r.Tests.Names
}

// Names returns the known checks for a prompt, each with the tests that failed.
func (k Known) Names() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(k)) {
		if tests := strings.Join(k[name], ", "); tests != "" {
			name += " (" + text.Clip(tests, 300) + ")"
		}
		names = append(names, name)
	}
	return names
}

// isKnown reports whether everything in a failure also failed before any work. A run with acceptance tests is known as
// a whole only if none of its tests failed.
func (k Known) isKnown(r Result) bool {
	tests, known := k[keyOf(r.Name)]
	if len(tests) == 0 {
		return known && (len(r.ran) == 0 || len(r.failing()) == 0)
	}
	return len(r.failing()) > 0 && !slices.ContainsFunc(r.failing(), func(t string) bool {
		return !slices.Contains(tests, t)
	})
}

// sort puts the new failures of a result before the known ones.
func (k Known) sort(r Result) {
	tests := k[keyOf(r.Name)]
	rank := map[bool]int{true: 1}
	slices.SortStableFunc(r.failing(), func(a, b string) int {
		return rank[slices.Contains(tests, a)] - rank[slices.Contains(tests, b)]
	})
}

// Spare marks the known failures of a report. The report passes if there are no others.
func (k Known) Spare(r *Report) {
	if len(k) == 0 {
		return
	}
	passed := true
	for i, res := range r.Results {
		r.Results[i].Known = !res.Passed && !res.Skipped && k.isKnown(res)
		k.sort(res)
		passed = passed && (res.Passed || r.Results[i].Known)
	}
	r.Passed = passed
}

// Settle removes the known failures that a report no longer has, and reports whether there were any. If a suite ran
// twice, the second run counts, because it has the project's own tests.
func (k Known) Settle(r Report) (changed bool) {
	last := map[string]Result{}
	for _, res := range r.Results {
		last[keyOf(res.Name)] = res
	}
	for name, res := range last {
		tests, known := k[name]
		switch still := res.failing(); {
		case !known || res.Skipped:
		case res.Passed:
			delete(k, name)
			changed = true
		case len(still) > 0 && len(still) < len(tests):
			k[name] = still
			changed = true
		}
	}
	return changed
}

// GoOn marks the known failures of a preflight, or with all every failure, and adds these to k.
func (k Known) GoOn(checks []record.Check, all bool) {
	for i, c := range checks {
		key := keyOf(c.Name)
		if _, was := k[key]; c.Status != record.CheckFails || !was && !all {
			continue
		}
		checks[i].Status, checks[i].Command, k[key] = record.CheckKnown, "", append([]string{}, c.Tests...)
	}
}

// SetBase replaces the failures that a preflight found by those of the base, which has no acceptance tests. If a suite
// ran twice, the second run has the project's own tests.
func SetBase(checks, base []record.Check) {
	for i := range checks {
		c := &checks[i]
		if c.Status != record.CheckFails {
			continue
		}
		c.Status, c.Detail, c.Tests, c.Command = record.CheckOK, "", nil, ""
		apart := func(o record.Check) bool { return o.Name == rest(c.Name) }
		if slices.ContainsFunc(checks, apart) {
			continue
		}
		same := func(o record.Check) bool { return SameCheck(o.Name, c.Name) }
		if b := slices.IndexFunc(base, same); b >= 0 && base[b].Status == record.CheckFails {
			c.Status, c.Detail, c.Tests, c.Command = base[b].Status, base[b].Detail, base[b].Tests, base[b].Command
		}
	}
}

// Fewer returns the checks that ran fewer tests than on the base, whose numbers are without acceptance tests. changed
// are the files by which the checks were chosen, nil if all packages were checked.
func (r Report) Fewer(base map[string]int, changed []string) (lines []string) {
	was, now, failed := map[string]int{}, map[string]int{}, map[string]bool{}
	for name, n := range base {
		was[keyOf(name)] += n
	}
	for _, res := range r.Results {
		key := keyOf(res.Name)
		now[key] += res.own
		failed[key] = failed[key] || !res.Passed && !res.Known || res.partial
	}
	for _, key := range slices.Sorted(maps.Keys(was)) {
		ran, checked := now[key]
		checked = checked || changed == nil || !strings.HasSuffix(key, ")")
		for _, f := range changed {
			checked = checked || slices.ContainsFunc(packages.Above(path.Dir(f)), func(dir string) bool {
				return dir != "." && strings.HasSuffix(key, at("", dir))
			})
		}
		if ran < was[key] && checked && !failed[key] {
			lines = append(lines, fmt.Sprintf("%s: %s ran, %d on the base", key, text.Plural(ran, "test"), was[key]))
		}
	}
	return lines
}
