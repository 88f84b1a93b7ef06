package validator

import "testing"

func TestWithoutReport(t *testing.T) {
	const in = "1 passed\n--- generated xml file: /tmp/x/report ---\nerror: cannot write /tmp/x/report\nend"
	if got, want := withoutReport(in, "/tmp/x/report"), "1 passed\nerror: cannot write {report}\nend"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
