package validator

import "slices"

// Known are validators that failed before any work, by name, with the tests that failed; none where they are not known
// by name, and it is all of the validator that bars nothing.
type Known map[string][]string

// failing are the tests that failed, where the runner names them.
func (r Result) failing() []string {
	if r.Tests == nil {
		return nil
	}
	return r.Tests.Names
}

// Spare lets those results of a report pass that failed before any work and say no more now than then.
func (k Known) Spare(r *Report) {
	if len(k) == 0 {
		return
	}
	passed := true
	for i, res := range r.Results {
		tests, known := k[res.Name]
		if known && !res.Passed && !res.Skipped {
			newly := slices.ContainsFunc(res.failing(), func(t string) bool { return !slices.Contains(tests, t) })
			r.Results[i].Known = len(tests) == 0 || len(res.failing()) > 0 && !newly
		}
		passed = passed && (res.Passed || r.Results[i].Known)
	}
	r.Passed = passed
}

// Settle takes out what passed in a report: from now on it bars like any other. changed says whether anything did.
func (k Known) Settle(r Report) (changed bool) {
	for _, res := range r.Results {
		tests, known := k[res.Name]
		switch still := res.failing(); {
		case !known || res.Skipped:
		case res.Passed:
			delete(k, res.Name)
			changed = true
		case len(still) > 0 && len(still) < len(tests):
			k[res.Name] = still
			changed = true
		}
	}
	return changed
}
