package record

import "context"

// Statuses of a check.
const (
	CheckOK      = "ok"
	CheckNote    = "note"
	CheckFinding = "finding"
	CheckUnable  = "unable" // a finding: it cannot start
	CheckFails   = "fails"  // a finding: it fails before any work
	CheckKnown   = "known"  // the user continues with this failure
	CheckNotRun  = "not run"
	CheckMended  = "mended" // fixed by doctor --fix
)

// Check is the result of one check of preflight or doctor.
type Check struct {
	Name    string   `json:"name"`
	From    string   `json:"from,omitempty"` // setting or file that causes it
	Status  string   `json:"status"`
	Detail  string   `json:"detail"`
	Command string   `json:"command,omitempty"` // the fix
	Tests   []string `json:"tests,omitempty"`   // the tests that fail, if they are known by name
	Seconds float64  `json:"seconds,omitempty"` // duration of a validator, or its time limit
	Own     int      `json:"own,omitempty"`     // the tests that ran, without acceptance tests

	// Members that only doctor uses.
	Also    []string                    `json:"also,omitempty"` // other checks with the same result
	Session string                      `json:"session,omitempty"`
	Safe    bool                        `json:"safe,omitempty"` // doctor --fix calls Fix, which cannot lose anything
	Fix     func(context.Context) error `json:"-"`
}

// OfValidator reports whether the check is about a validator.
func (c Check) OfValidator() bool { return c.Status != CheckNote && c.Status != CheckFinding }

// Detected reports whether the check is about a validator that the user did not configure.
func (c Check) Detected() bool { return c.OfValidator() && c.From != "tilth.validator" }

// IsFinding reports whether the check is a problem that stops a run before it starts.
func (c Check) IsFinding() bool {
	return c.Status == CheckFinding || c.Status == CheckUnable || c.Status == CheckFails
}

// Says returns the result as a sentence.
func (c Check) Says() string {
	switch c.Status {
	case CheckOK:
		return c.Name + " (" + c.From + ")"
	case CheckNote:
		return c.Detail
	case CheckUnable:
		return c.Name + " cannot start: " + c.Detail
	case CheckFails:
		return c.Name + " fails before any work: " + c.Detail
	case CheckKnown:
		return c.Name + " is known to fail: " + c.Detail
	case CheckNotRun:
		return c.Name + " is not run: " + c.Detail
	}
	return c.Name + ": " + c.Detail
}
