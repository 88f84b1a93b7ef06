package held

import "fmt"

// RefusedError is a command that cannot be carried out; nothing was changed.
type RefusedError struct{ Why, Hint string }

func (e *RefusedError) Error() string { return e.Why }

// Refuse is a RefusedError.
func Refuse(hint, format string, args ...any) error {
	return &RefusedError{Why: fmt.Sprintf(format, args...), Hint: hint}
}

// StepError is a step of a teardown or a resume that could not be done. The session directory is still there, and
// doing the same again goes on from there.
type StepError struct {
	Step string
	Err  error
	Hint string
}

func (e *StepError) Error() string { return e.Step + ": " + e.Err.Error() }

func (e *StepError) Unwrap() error { return e.Err }
