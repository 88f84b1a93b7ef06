package scripttest

import (
	"maps"
	"slices"
	"testing"

	"github.com/git-tilth/git-tilth/internal/record"
)

// What log takes for a known type is what the scripts know the fields of.
func TestEventTypesAreTheContracts(t *testing.T) {
	want := slices.Sorted(maps.Keys(eventFields))
	if got := slices.Sorted(slices.Values(record.Types())); !slices.Equal(got, want) {
		t.Errorf("record.Types: %v\nthe contract's: %v", got, want)
	}
}
