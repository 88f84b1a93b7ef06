package pattern

import (
	"strings"
	"testing"
)

func TestEndless(t *testing.T) {
	for glob, want := range map[string]bool{
		"src/**/*.{test,spec}.{js,jsx,ts,tsx,mjs,cjs}": false, "{a,b,{c,d}}": false, "}{,": false, "": false,
		strings.Repeat("{a,a}", 40): true, "{" + strings.Repeat("{a,b},", 20) + "c}": true,
	} {
		if Endless(glob) != want {
			t.Errorf("%s: %v", glob, !want)
		}
	}
}
