package judge

import (
	"testing"
	"time"
)

func TestYoungStamps(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name  string
		ctime time.Time
		want  bool
	}{
		{"now", now, true},
		{"a second ago", now.Truncate(time.Second).Add(time.Millisecond - time.Second), false},
		{"this second, of which no parts are noted", now.Truncate(time.Second), true},
		{"seconds ago, of which no parts are noted", now.Truncate(time.Second).Add(-5 * time.Second), false},
	} {
		if got := (stamp{ctime: c.ctime.UnixNano()}).young(); got != c.want {
			t.Errorf("%s: young is %v", c.name, got)
		}
	}
}
