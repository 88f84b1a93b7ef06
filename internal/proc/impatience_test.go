package proc

import (
	"os"
	"syscall"
	"testing"
	"time"
)

func TestASecondSignalIsNotTheEchoOfTheFirst(t *testing.T) {
	const soon, late = 10 * time.Millisecond, 2 * echoWindow
	type one struct {
		sig   os.Signal
		after time.Duration // since the first signal
		ends  bool
	}
	cases := map[string]struct {
		git  bool
		sigs []one
	}{
		"alone": {false, []one{{syscall.SIGINT, 0, false}, {syscall.SIGINT, soon, true}}},
		"git's copy": {true, []one{{syscall.SIGINT, 0, false}, {syscall.SIGINT, soon, false},
			{syscall.SIGINT, 2 * soon, true}}},
		"no copy came":   {true, []one{{syscall.SIGINT, 0, false}, {syscall.SIGINT, late, true}}},
		"another signal": {true, []one{{syscall.SIGINT, 0, false}, {syscall.SIGTERM, soon, true}}},
		"a copy, then another signal": {true, []one{{syscall.SIGTERM, 0, false}, {syscall.SIGTERM, soon, false},
			{syscall.SIGINT, late, true}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			count, begin := Impatience{echoes: c.git}, time.Now()
			for i, s := range c.sigs {
				if got := count.Second(s.sig, begin.Add(s.after)); got != s.ends {
					t.Errorf("signal %d: %v, want %v", i+1, got, s.ends)
				}
			}
		})
	}
}
