package text

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"from", "json", "max-tokens", "max-minutes", "keep-going"}
	for word, want := range map[string]string{
		"form": "from", "jsno": "json", "max-token": "max-tokens", "max-minuts": "max-minutes",
		"keepgoing": "keep-going", "minutes": "max-minutes", "max-mi": "max-minutes", "max-n": "",
		"nonsense": "", "": "", "x": "", "stat": "",
	} {
		if got, _ := Nearest(word, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
	if _, slips := Nearest("TILTH_MAX_TOKEN", []string{"TILTH_MAX_TOKENS"}); slips != 1 {
		t.Errorf("%d slips, want 1", slips)
	}
}
