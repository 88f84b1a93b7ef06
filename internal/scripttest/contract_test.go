package scripttest

import (
	"maps"
	"slices"
	"testing"

	"github.com/git-tilth/git-tilth/internal/record"
)

// Every event type that log knows has its fields in eventFields.
func TestEventTypesAreTheContracts(t *testing.T) {
	want := slices.Sorted(maps.Keys(eventFields))
	if got := slices.Sorted(slices.Values(record.Types())); !slices.Equal(got, want) {
		t.Errorf("record.Types: %v\nthe contract's: %v", got, want)
	}
}
