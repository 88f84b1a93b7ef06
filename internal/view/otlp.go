package view

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// batchSpans is how many spans go out at once: far below what receivers take.
const batchSpans = 500

// Export writes the session's record as OpenTelemetry traces: a trace for each run of
// a task and one for the session itself; iterations, reviews, model calls, tools and
// validators as spans, model calls with the gen_ai conventions.
//
// dest is the URL of an OTLP/HTTP receiver (spans go as protobuf to <url>/v1/traces,
// with the headers of OTEL_EXPORTER_OTLP_HEADERS), or a file: one JSON document, JSON
// lines where its name ends in .jsonl, protobuf where it ends in .pb, .binpb or
// .protobuf. A file is replaced by rename. It returns how many lines of the record it
// left out because they are no events.
func Export(ctx context.Context, s *session.Session, dest string) (skipped int, err error) {
	out, err := openSink(ctx, dest, os.Getenv)
	if err != nil {
		return 0, err
	}
	if skipped, err = exportTo(ctx, s, out); err != nil {
		out.abort()
		return skipped, err
	}
	return skipped, out.close()
}

// sink takes batches of spans.
type sink interface {
	write(ptrace.Traces) error
	close() error // makes what was written final
	abort()       // drops it, as far as that is possible
}

func openSink(ctx context.Context, dest string, getenv func(string) string) (sink, error) {
	if !strings.Contains(dest, "://") {
		return newFileSink(dest)
	}
	u, err := url.Parse(dest)
	if err != nil {
		// The parser's error quotes the whole URL, which may hold a password.
		return nil, errors.New("export: the destination is no URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("export: %q is no http or https URL", u.Redacted())
	}
	if !strings.HasSuffix(u.Path, "/v1/traces") {
		u = u.JoinPath("v1", "traces")
	}
	return newHTTPSink(ctx, u, getenv), nil
}

// exportTo streams the record into out.
func exportTo(ctx context.Context, s *session.Session, out sink) (skipped int, err error) {
	x := newTracer(s, out)
	if tasks, err := s.Tasks(); err == nil {
		for _, t := range tasks {
			x.titles[t.ID] = t.Title
		}
	}
	_, skipped, err = s.ScanRecord(0, func(_ int64, line []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return x.event(record.Parse(line))
	})
	if err != nil {
		return skipped, err
	}
	return skipped, x.finish()
}
