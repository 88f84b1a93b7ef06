package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/record"
)

// Case is a worker's hand-in, with the arguments of submit_case.
type Case struct {
	Summary       string     `json:"summary"`
	Coverage      []Coverage `json:"ac_coverage"`
	WorkArounds   []string   `json:"work_arounds"`
	Uncertainties []string   `json:"uncertainties"`
}

// Coverage is the evidence for one acceptance criterion.
type Coverage struct {
	Criterion   string `json:"criterion"`
	AddressedBy string `json:"addressed_by"`
	Evidence    string `json:"evidence"`
}

// parseCase reads the arguments of submit_case. The error is a sentence for the worker.
func parseCase(args string) (*Case, error) {
	var c Case
	if err := decodeObject(args, &c); err != nil {
		return nil, err
	}
	if strings.TrimSpace(c.Summary) == "" {
		return nil, fmt.Errorf("summary is missing: say in a few sentences what was done")
	}
	return &c, nil
}

// Text returns the case for the evaluator.
func (c *Case) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", strings.TrimSpace(c.Summary))
	for _, a := range c.Coverage {
		fmt.Fprintf(&b, "\n- Criterion: %s\n  Met by: %s\n  Evidence: %s\n", a.Criterion, a.AddressedBy, a.Evidence)
	}
	return b.String() + list("Work-arounds", c.WorkArounds) + list("Uncertain", c.Uncertainties)
}

// list returns a list with a title, or "" for an empty list.
func list(title string, items []string) string {
	if len(items) == 0 {
		return ""
	}
	return fmt.Sprintf("\n%s:\n- %s\n", title, strings.Join(items, "\n- "))
}

// The words of a verdict.
const (
	Accept = "accept"
	Reject = "reject"
)

// categories are the reasons for a rejection.
var categories = []string{"scope_creep", "acceptance_gap", "weak_test", "tests_pass_but_wrong", "half_finished",
	"spec_violation"}

// Verdict is the evaluator's judgement, with the arguments of submit_verdict.
type Verdict struct {
	Verdict  string   `json:"verdict"`
	Category *string  `json:"rejection_category"`
	Concern  *string  `json:"concern"`
	Evidence []string `json:"evidence"`
	NextStep *string  `json:"next_step"`
}

// parseVerdict reads the arguments of submit_verdict. Models write "" for nothing, so an empty optional field becomes
// null. A contradictory verdict is an error, worded for the evaluator.
func parseVerdict(args string) (*Verdict, error) {
	var v Verdict
	if err := decodeObject(args, &v); err != nil {
		return nil, err
	}
	v.Verdict = strings.ToLower(strings.TrimSpace(v.Verdict))
	for _, field := range []**string{&v.Category, &v.Concern, &v.NextStep} {
		if *field != nil && strings.TrimSpace(**field) == "" {
			*field = nil
		}
	}
	switch {
	case v.Verdict != Accept && v.Verdict != Reject:
		return nil, fmt.Errorf("verdict must be %q or %q", Accept, Reject)
	case v.Verdict == Accept && v.Category != nil:
		return nil, fmt.Errorf("an accepted change has no rejection_category: either accept without one, or reject")
	case v.Verdict == Reject && v.Category == nil:
		return nil, fmt.Errorf("a rejection needs a rejection_category: one of %s", strings.Join(categories, ", "))
	case v.Category != nil && !slices.Contains(categories, *v.Category):
		return nil, fmt.Errorf("unknown rejection_category %q: use one of %s",
			*v.Category, strings.Join(categories, ", "))
	}
	return &v, nil
}

// Accepted reports whether the change can be committed.
func (v *Verdict) Accepted() bool { return v.Verdict == Accept }

// Text returns the verdict for the worker and for later prompts.
func (v *Verdict) Text() string {
	if v.Accepted() {
		return "Accepted."
	}
	var b strings.Builder
	b.WriteString("Rejected")
	if v.Category != nil {
		fmt.Fprintf(&b, " (%s)", *v.Category)
	}
	b.WriteString(".")
	if v.Concern != nil {
		fmt.Fprintf(&b, "\nConcern: %s", *v.Concern)
	}
	for _, e := range v.Evidence {
		fmt.Fprintf(&b, "\nEvidence: %s", e)
	}
	if v.NextStep != nil {
		fmt.Fprintf(&b, "\nNext step: %s", *v.NextStep)
	}
	return b.String()
}

// objection returns the verdict's objection to a change.
func (v *Verdict) objection() string {
	var says []string
	for _, s := range []*string{v.Category, v.Concern} {
		if s != nil {
			says = append(says, *s)
		}
	}
	next := ""
	if v.NextStep != nil {
		next = *v.NextStep
	}
	return record.WithNext(strings.Join(says, ": "), next)
}

// decodeObject reads one JSON object. For truncated, repeated or wrapped arguments it returns an error that names the
// fault.
func decodeObject(args string, into any) error {
	trimmed := strings.TrimSpace(args)
	if !strings.HasPrefix(trimmed, "{") {
		return fmt.Errorf("the arguments must be one JSON object")
	}
	if !json.Valid([]byte(trimmed)) {
		return fmt.Errorf("the arguments are not valid JSON: send one complete object")
	}
	if name := repeated(trimmed); name != "" {
		return fmt.Errorf("%q appears twice: escape the quotes in texts, and send each member once", name)
	}
	if err := json.Unmarshal([]byte(trimmed), into); err != nil {
		if te, ok := err.(*json.UnmarshalTypeError); ok {
			kind := strings.Replace(te.Type.Kind().String(), "slice", "list", 1)
			return fmt.Errorf("%s must be a %s, not %s", te.Field, kind, te.Value)
		}
		return fmt.Errorf("the arguments cannot be read: %w", err)
	}
	return nil
}
