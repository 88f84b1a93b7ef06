package scripttest

import (
	"maps"
	"slices"
	"testing"

	"github.com/git-tilth/git-tilth/internal/session"
)

// What log takes for a known type is what the scripts know the fields of.
func TestEventTypesAreTheContracts(t *testing.T) {
	want := slices.Sorted(maps.Keys(eventFields))
	if got := slices.Sorted(slices.Values(session.EventTypes())); !slices.Equal(got, want) {
		t.Errorf("session.EventTypes: %v\nthe contract's: %v", got, want)
	}
}
