package session

import (
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
)

// BenchmarkScan reads a record of 10,000 events and 5 MB, with and without the roll-up.
func BenchmarkScan(b *testing.B) {
	s := newSession(b)
	text := strings.Repeat(script(`tool_result {"task_id":"T-001","iter":1,"result_preview":"`+strings.Repeat(`ok  pkg\t0.1s\n`, 28)+`"}`), 10_000)
	write(b, s.Path(RecordFile), text)
	for name, feed := range map[string]bool{"scan": false, "rollup": true} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				sum := NewSummary(testID)
				_, _, err := jsonl.Scan(s.Path(RecordFile), 0, func(_ int64, line []byte) error {
					if feed {
						sum.Feed(record.Parse(line))
					}
					return nil
				})
				must(b, err)
			}
		})
	}
}

func BenchmarkWriteFileAtomic(b *testing.B) {
	s := newSession(b)
	data := []byte(strings.Repeat("x", 2000))
	for b.Loop() {
		must(b, jsonl.WriteFile(s.Path("x"), data))
	}
}

// BenchmarkTranscript appends a message of 4 KB.
func BenchmarkTranscript(b *testing.B) {
	s := newSession(b)
	add, shut, err := s.OpenTranscript(record.RoleWorker, record.Scope{TaskID: "T-001"}, testNow,
		record.NewRedactor([]string{"API_KEY=sk-0123456789abcdef"}, nil))
	must(b, err)
	defer shut()
	message := []byte(`{"role":"tool","content":"` + strings.Repeat(`func main() {\n\treturn\n}\n`, 150) + `"}`)
	for b.Loop() {
		must(b, add(message))
	}
}
