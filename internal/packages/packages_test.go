package packages

import (
	"slices"
	"strings"
	"testing"
)

func TestMentions(t *testing.T) {
	var got []string
	Mentions("const a = require('@x/core/sub')\nfrom my-core.util import b\n#include <lib/c.h>\n", func(name string) {
		got = append(got, name)
	})
	for _, want := range strings.Fields("@x/core /core @x/core/sub my-core my-core.util lib /c.h") {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not in %q", want, got)
		}
	}
}
