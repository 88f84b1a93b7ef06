package view

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

const (
	headEvery   = 700 * time.Millisecond // interval of checks of the head
	aliveEvery  = 15 * time.Second       // interval of messages that reveal a dead connection
	writeWithin = 30 * time.Second       // a reader that takes longer has gone to sleep
)

// stream is one browser that follows one session by server-sent events. `block` has events, `head` has the part above
// them, and `reset` discards everything, because the record was rewound or replaced.
type stream struct {
	w      http.ResponseWriter
	ctl    *http.ResponseController
	s      *session.Session
	follow follower
	blocks blocks
	sum    *session.Summary
	doing  Doings
	bad    int    // lines that are not objects
	head   []byte // last head sent
	sent   bool   // something was sent since the last flush
}

func (v *viewer) events(w http.ResponseWriter, r *http.Request, s *session.Session) {
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	st := &stream{w: w, ctl: http.NewResponseController(w), s: s, follow: follower{s: s}, sum: session.NewSummary(s.ID),
		doing: Doings{}}
	// A browser that reconnects has events of the stream before, and starts again.
	if r.Header.Get("Last-Event-ID") != "" {
		st.message("reset", []byte("{}"))
	}
	st.run(r.Context())
}

// run ends when the reader has gone, the server stops or the session is removed.
func (st *stream) run(ctx context.Context) {
	var looked, alive time.Time
	for {
		now := time.Now()
		changed, err := st.record(ctx)
		if err != nil {
			return
		}
		if changed || now.Sub(looked) >= headEvery {
			looked = now
			st.sendHead(now)
		}
		if now.Sub(alive) >= aliveEvery {
			alive = now
			fmt.Fprint(st.w, ": alive\n\n")
			st.sent = true
		}
		if st.sent {
			st.ctl.SetWriteDeadline(now.Add(writeWithin))
			if st.ctl.Flush() != nil {
				return
			}
			st.sent = false
		}
		if !wait(ctx, pollEvery) {
			return
		}
	}
}

// record sends the new events of the record.
func (st *stream) record(ctx context.Context) (changed bool, err error) {
	before := st.follow.off
	skipped, reset, err := st.follow.poll(func(e record.Line) error {
		st.sum.Feed(e)
		st.doing.Feed(e)
		if !st.blocks.add(e) {
			return nil
		}
		st.ctl.SetWriteDeadline(time.Now().Add(writeWithin))
		if err := st.sendBlock(); err != nil {
			return err
		}
		return ctx.Err()
	})
	st.bad += skipped
	if err != nil {
		return false, err
	}
	if reset {
		st.blocks, st.doing = blocks{}, Doings{}
		st.sum = session.NewSummary(st.s.ID)
		st.bad = 0
		return true, st.message("reset", []byte("{}"))
	}
	if st.blocks.index.N > 0 {
		err = st.sendBlock()
	}
	return st.follow.off != before, err
}

func (st *stream) sendBlock() error {
	index := inPage(st.blocks.index)
	var data bytes.Buffer
	data.Grow(len(st.blocks.events) + len(index) + 16)
	data.Write(index)
	data.WriteString("\n[")
	// The stream ends a message at a line break. In JSON line breaks have no meaning.
	data.Write(bytes.ReplaceAll(bytes.ReplaceAll(st.blocks.events, []byte("\n"), nil), []byte("\r"), nil))
	data.WriteByte(']')
	st.blocks.reset()
	return st.message("block", data.Bytes())
}

// sendHead sends the head if it changed.
func (st *stream) sendHead(now time.Time) {
	h := readHead(st.s, now)
	h.Live, h.Rendered = true, 0
	h.Summary, h.Unreadable = st.sum, st.bad
	for _, task := range slices.Sorted(maps.Keys(st.doing)) {
		if d := st.doing[task]; h.Running {
			h.Doing = append(h.Doing, headDoing{task, d.What, d.Since.UnixMilli()})
		}
	}
	if data := inPage(h); !bytes.Equal(data, st.head) {
		st.head = data
		st.message("head", data)
	}
}

// message writes one server-sent event.
func (st *stream) message(name string, data []byte) error {
	st.sent = true
	var b bytes.Buffer
	b.Grow(len(data) + 64)
	b.WriteString("event: " + name + "\nid: " + strconv.FormatInt(st.follow.off, 10) + "\n")
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		b.WriteString("data: ")
		b.Write(line)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	_, err := st.w.Write(b.Bytes())
	return err
}
