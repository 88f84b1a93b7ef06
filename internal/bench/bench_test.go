//go:build bench

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"text/tabwriter"
	"time"
)

// TestMain runs the test binary's other roles: the recording git, and the small process that measures another one's
// memory.
func TestMain(m *testing.M) {
	switch {
	case filepath.Base(os.Args[0]) == "git":
		os.Exit(recordGit(os.Args[1:]))
	case os.Getenv(gaugeVar) != "":
		os.Exit(gauge(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// table has the figures measured so far.
type table []row

// row is one figure.
type row struct {
	name     string
	measured string
	floor    string // what floor is
	value    string // the ratio or size that the target is about
	target   string
	over     bool
}

// add prints a figure, so that a run that is cut short was not in vain, and keeps it for the table.
func (tb *table) add(r row) {
	fmt.Printf("    %s: %s, floor %s: %s of %s, %s\n", r.name, r.measured, r.floor, r.value, r.target, r.state())
	*tb = append(*tb, r)
}

func (r row) state() string {
	if r.over {
		return "OVER"
	}
	return "ok"
}

// ratio adds a figure that is judged against its floor.
func (tb *table) ratio(name string, measured, floor time.Duration, what string, target float64) {
	value := float64(measured) / float64(floor)
	tb.add(row{name, short(measured), short(floor) + " " + what, fmt.Sprintf("%.2f x", value),
		fmt.Sprintf("%.2f x", target), value > target})
}

// limit adds a figure with an absolute target; the floor shows the machine's speed.
func (tb *table) limit(name string, measured, floor time.Duration, what string, target time.Duration) {
	tb.add(row{name, short(measured), short(floor) + " " + what, short(measured), short(target), measured > target})
}

// above adds a figure that is compared with its floor, per unit.
func (tb *table) above(name string, measured, floor time.Duration, what string, target time.Duration) {
	diff := measured - floor
	tb.add(row{name, short(measured), short(floor) + " " + what, "+" + short(diff), "+" + short(target), diff > target})
}

// memory adds a size in MiB.
func (tb *table) memory(name string, mib, target float64) {
	tb.add(row{name, fmt.Sprintf("%.0f MiB", mib), "-", fmt.Sprintf("%.0f MiB", mib), fmt.Sprintf("%.0f MiB", target),
		mib > target})
}

// count adds a figure without a unit.
func (tb *table) count(name string, value, target float64) {
	tb.add(row{name, fmt.Sprintf("%.1f", value), "-", fmt.Sprintf("%.1f", value), fmt.Sprintf("%.1f", target),
		value > target})
}

func short(d time.Duration) string {
	switch {
	case d >= 10*time.Second || d <= -10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= 100*time.Millisecond:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.2f ms", d.Seconds()*1e3)
}

func (tb table) print() {
	out := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintf(out, "\nfigure\tmeasured\tfloor\tvalue\ttarget\t\n")
	for _, r := range tb {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\n", r.name, r.measured, r.floor, r.value, r.target, r.state())
	}
	out.Flush()
}

// TestBench measures everything; -run TestBench/<name> measures one part.
func TestBench(t *testing.T) {
	var tb table
	for _, part := range []struct {
		name    string
		measure func(*testing.T, *table)
	}{
		{"start", benchStart}, {"sandbox", benchSandbox}, {"memory", benchMemory},
		{"turns", benchTurns}, {"tasks", benchTasks}, {"lanes", benchLanes}, {"lanenight", benchLaneNight},
		{"lanetree", benchLaneTree},
		{"list", benchList},
		{"counts", benchCounts}, {"agents", benchAgents}, {"growth", benchGrowth}, {"bigtree", benchBigTree},
		{"earlier", benchEarlier},
		{"layout", benchLayOut},
		{"validators", benchValidators}, {"resume", benchResume}, {"reset", benchReset}, {"rewind", benchRewind},
		{"goback", benchGoBack},
		{"view", benchView}, {"proof", benchProof}, {"fleet", benchFleet},
	} {
		t.Run(part.name, func(t *testing.T) { part.measure(t, &tb) })
	}
	tb.print()
}

// alternate runs the given actions in turns and returns the median time of each. An action makes its own preparations
// and returns only the time that counts. The first round fills the caches.
func alternate(rounds int, actions ...func() time.Duration) []time.Duration {
	times := make([][]time.Duration, len(actions))
	for round := range rounds + 1 {
		for i, act := range actions {
			took := act()
			if round > 0 {
				times[i] = append(times[i], took)
			}
		}
	}
	out := make([]time.Duration, len(actions))
	for i := range times {
		out[i] = median(times[i])
	}
	return out
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	if len(d) == 0 {
		return 0
	}
	return (d[len(d)/2] + d[(len(d)-1)/2]) / 2
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
