package record_test

import (
	"testing"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/record"
)

func TestEachReasonIsOneRow(t *testing.T) {
	rows := map[string]record.Reason{}
	for _, r := range record.Reasons() {
		if _, twice := rows[r.Word]; twice || r.Says == "" {
			t.Errorf("%s: twice, or without words for people", r.Word)
		}
		if r.Task && r.Status != "failed" {
			t.Errorf("a task fails as %s, and the session is %s", r.Word, r.Status)
		}
		rows[r.Word] = r
	}
	for _, c := range config.AllCaps() {
		row, known := rows[c.Stop]
		if !known || row.Task != c.PerTask || !c.PerTask && (row.Exit != 5 || row.Status != "running" || !row.Calm) {
			t.Errorf("the cap %s stops as %s: %+v", c.Name, c.Stop, row)
		}
	}
	for word, want := range map[string]string{
		record.AllDone: "all_done", record.Interrupted: "running", record.UsageLimit: "running",
		record.DiskFull: "running", record.ReviewerFailed: "running", record.Errored: "failed",
		record.TasksFailed: "failed", "of_tomorrow": "running",
	} {
		if got := record.ReasonOf(word).Status; got != want {
			t.Errorf("%s leaves %s, want %s", word, got, want)
		}
	}
}
