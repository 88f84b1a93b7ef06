package lifecycle

import "testing"

func TestIsSHA(t *testing.T) {
	for s, want := range map[string]bool{
		"": false, "abc": false, "abcd": true, "ABCD": true, "0123456789abcdef0123456789abcdef01234567": true,
		"HEAD": false, "main~0": false, "abcd~1": false, "abcd^": false, "-abc": false, "abcd:x": false,
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef":  true,
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0": false,
	} {
		if got := isSHA(s); got != want {
			t.Errorf("isSHA(%q) = %v", s, got)
		}
	}
}
