package scripttest

import (
	"os"
	"strconv"
	"sync/atomic"

	"github.com/git-tilth/git-tilth/internal/scripttest/clock"
)

// SkipWaits makes the waits of this process end at once. The file has their total duration, by which the clock of the
// script's next process is advanced too.
func SkipWaits(file string) {
	var passed atomic.Int64
	if b, err := os.ReadFile(file); err == nil {
		n, _ := strconv.ParseInt(string(b), 10, 64)
		passed.Store(n)
	}
	clock.Advance(&passed, func() { _ = os.WriteFile(file, strconv.AppendInt(nil, passed.Load(), 10), 0o600) })
}
