package view

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// DiffFunc returns the patch of a session's commit against its parent, empty for a missing commit. truncated reports
// that the patch is incomplete.
type DiffFunc func(ctx context.Context, s *session.Session, sha string) (patch string, truncated bool)

// of returns the diffs of a session's commits.
func (f DiffFunc) of(ctx context.Context, s *session.Session) func(sha string) (string, bool) {
	return func(sha string) (string, bool) {
		if f == nil {
			return "", false
		}
		return f(ctx, s, sha)
	}
}

// RenderFile writes the session's record as one self-contained page, chat.html, with its review at the top, or without
// one for nil. The file is replaced by rename, so that a reader sees the old page or the new one, and no other file of
// the session changes. It is safe next to a running session.
//
// The record is streamed, so memory does not depend on its length.
func RenderFile(ctx context.Context, s *session.Session, now time.Time, diff DiffFunc, review *Report) error {
	// There is no fsync, because unlike the record a page can be made again after a power cut.
	fill := func(f io.Writer) error { return writePage(ctx, f, s, now, diff, review) }
	err := jsonl.Replace(s.Path(session.ChatHTMLFile), false, fill)
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

func writePage(ctx context.Context, w io.Writer, s *session.Session, now time.Time, diff DiffFunc,
	review *Report) error {
	r := renderer{out: bufio.NewWriterSize(w, 256<<10)}
	page := staticPage()
	r.out.WriteString(page.beginning(review, diff.of(ctx, s)))
	_, unreadable, err := record.Scan(s.Path(session.RecordFile), 0, func(e record.Line) error {
		if r.blocks.add(e) {
			return r.flush(ctx)
		}
		return nil
	})
	if err == nil {
		err = r.flush(ctx)
	}
	if err != nil {
		return err
	}
	h := readHead(s, now)
	h.Unreadable = unreadable
	if h.Summary, err = s.Summarize(); err != nil {
		h.Summary = nil
	}
	r.script("head", ` id="head"`, inPage(h))
	r.out.WriteString(page.after)
	return r.out.Flush()
}

type renderer struct {
	out    *bufio.Writer
	blocks blocks
}

// flush writes the current block.
func (r *renderer) flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b := &r.blocks
	if b.index.N > 0 {
		r.script("index", "", inPage(b.index))
		r.out.WriteString(`<script type="application/json" class="events">[`)
		r.out.Write(b.events)
		r.out.WriteString("]</script>\n")
	}
	b.reset()
	// A broken writer keeps its error; asking here ends a render to a full disk early.
	_, err := r.out.Write(nil)
	return err
}

func (r *renderer) script(class, attr string, data []byte) {
	r.out.WriteString(`<script type="application/json" class="` + class + `"` + attr + `>`)
	r.out.Write(data)
	r.out.WriteString("</script>\n")
}
