package agent

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/record"
)

// A request is answered however long its id is, and updates of a conversation without an id are counted.
func TestACPLines(t *testing.T) {
	p := copilot()
	turn := Turn{Dir: "/", Emit: func(record.Event) error { return nil }}
	s := newStream(p, &turn)
	s.stop, s.lingered = func(How, string) {}, func() {}
	c := &acpConn{s: s, row: p.acp, out: newOutbox(),
		waiting: map[int64]chan gjson.Result{1: make(chan gjson.Result, 1)},
		tools:   map[string]*acpTool{}, replayed: map[string]bool{}}
	id := `"` + strings.Repeat("x", 5000) + `"`
	c.line([]byte(`{"id":` + id + `,"method":"fs/read_text_file","params":{}}`))
	if said := string(c.out.queue); !strings.Contains(said, id) || !strings.Contains(said, "-32601") {
		t.Errorf("the answer is %.100s", said)
	}
	skipped := c.skipped
	early := `{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"usage_update"}}}`
	c.line([]byte(early))
	c.line([]byte(`{"id":1,"result":{"sessionId":"s"}}`))
	c.line([]byte(early))
	if c.skipped != skipped+1 || c.session != "s" {
		t.Errorf("%d lines are counted for the conversation %q", c.skipped-skipped, c.session)
	}
}

// FuzzACPLine checks the reader with any line in any phase: no panic, and at most one answer to a request.
func FuzzACPLine(f *testing.F) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"a"},"options":[]}}`,
		`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"a","rawInput":{}}}}`,
		`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"usage_update","cost":{"amount":1e999}}}}`,
		`{"id":1,"result":{"stopReason":[]}}`, `{"id":1,"error":{"message":"{\"a\":{\"b\":\"429\"}}","data":[[[[]]]]}}`, `{`, "\xff", ``,
	} {
		f.Add([]byte(line), 3)
	}
	f.Fuzz(func(t *testing.T, line []byte, phase int) {
		p := copilot()
		turn := Turn{Dir: "/", Emit: func(record.Event) error { return nil }}
		s := newStream(p, &turn)
		s.stop, s.lingered = func(How, string) {}, func() {}
		c := &acpConn{s: s, row: p.acp, out: newOutbox(), session: "s", phase: acpPhase(phase & 3), dir: "/",
			waiting: map[int64]chan gjson.Result{1: make(chan gjson.Result, 1)}, tools: map[string]*acpTool{},
			replayed: map[string]bool{}}
		answer := c.waiting[1]
		c.line(line)
		c.line(line)
		if n := strings.Count(string(c.out.queue), "\n"); n > 2 {
			t.Errorf("%d answers", n)
		}
		select {
		case e := <-answer:
			said, err := result(e)
			if c.took(said, err); err != nil {
				_ = c.endOf(err).Error()
			}
		default:
		}
		_ = c.ended()
	})
}
