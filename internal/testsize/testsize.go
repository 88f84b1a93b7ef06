// Package testsize returns the number of cases for tests without a natural end: kills, random stories, long tables.
// TILTH_TESTS says how much there is time for: unset, minutes on a new machine; ci, a third of an hour; full, a night.
package testsize

import "os"

// InCI reports whether the tests have at least the time of CI.
func InCI() bool { return os.Getenv("TILTH_TESTS") == "ci" || IsFull() }

// IsFull reports whether the tests have the time of a night.
func IsFull() bool { return os.Getenv("TILTH_TESTS") == "full" }

// Of returns few, or full at night. CI takes an eighth of what lies between.
func Of(few, full int) int {
	switch {
	case IsFull():
		return full
	case InCI():
		return few + (full-few)/8
	}
	return few
}
