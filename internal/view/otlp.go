package view

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Export writes the session's record as OpenTelemetry traces: a trace for each run of a task and one for the session
// itself; iterations, reviews, model calls, tools and validators as spans, model calls with the gen_ai conventions.
//
// dest is the URL of an OTLP/HTTP receiver (spans go as JSON to <url>/v1/traces, with the headers of
// OTEL_EXPORTER_OTLP_HEADERS), "-" for stdout, or a file, which is replaced by rename. A file and stdout get one JSON
// document. It returns how many lines of the record it left out because they are no events.
func Export(ctx context.Context, s *session.Session, dest string, stdout io.Writer) (skipped int, err error) {
	if strings.Contains(dest, "://") {
		send, err := sender(ctx, dest, os.Getenv)
		if err != nil {
			return 0, err
		}
		return export(ctx, s, send)
	}
	if dest == "-" {
		return exportDocument(ctx, s, stdout)
	}
	write := jsonl.Replace
	if info, err := os.Lstat(dest); err == nil && !info.Mode().IsRegular() {
		write = writeInto
	}
	err = write(dest, false, func(f io.Writer) error {
		skipped, err = exportDocument(ctx, s, f)
		return err
	})
	if err != nil {
		err = fmt.Errorf("export: %w", err)
	}
	return skipped, err
}

// writeInto writes to what is no plain file: a device such as /dev/stdout, a pipe, what a symlink leads to. A rename
// would put a file in its place.
func writeInto(path string, _ bool, fill func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(fill(f), f.Close())
}

// exportDocument writes the spans as one JSON document, with a line for each batch.
func exportDocument(ctx context.Context, s *session.Session, w io.Writer) (skipped int, err error) {
	io.WriteString(w, `{"resourceSpans":[`)
	between := ""
	skipped, err = export(ctx, s, func(t *tracesData) error {
		io.WriteString(w, between)
		between = ","
		return json.NewEncoder(w).Encode(t.ResourceSpans[0])
	})
	if err == nil {
		_, err = io.WriteString(w, "]}\n")
	}
	return skipped, err
}

// export hands the record's spans to send, batch by batch.
func export(ctx context.Context, s *session.Session, send sendFunc) (skipped int, err error) {
	x := newTracer(s, send)
	if tasks, err := s.Tasks(); err == nil {
		for _, t := range tasks {
			x.titles[t.ID] = t.Title
		}
	}
	_, skipped, err = record.Scan(s.Path(session.RecordFile), 0, func(e record.Line) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return x.event(e)
	})
	if err != nil {
		return skipped, err
	}
	return skipped, x.finish()
}

// sendTries bounds how often a batch is sent again when the receiver is busy.
const sendTries = 5

// sender sends batches to a receiver by OTLP over HTTP.
func sender(ctx context.Context, dest string, getenv func(string) string) (sendFunc, error) {
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
	headers := http.Header{}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		for pair := range strings.SplitSeq(getenv(name), ",") {
			k, v, ok := strings.Cut(pair, "=")
			if value, err := url.PathUnescape(strings.TrimSpace(v)); ok && err == nil {
				headers.Set(strings.TrimSpace(k), value)
			}
		}
	}
	headers.Set("Content-Type", "application/json")
	headers.Set("Content-Encoding", "gzip")
	client := &http.Client{Timeout: 60 * time.Second}
	return func(t *tracesData) error {
		var body bytes.Buffer
		zip := gzip.NewWriter(&body)
		if err := errors.Join(json.NewEncoder(zip).Encode(t), zip.Close()); err != nil {
			return err
		}
		for try := 1; ; try++ {
			retry, err := post(ctx, client, u, headers, body.Bytes())
			if err == nil || !retry || try == sendTries {
				return err
			}
			if !wait(ctx, time.Duration(try)*time.Second) {
				return ctx.Err()
			}
		}
	}, nil
}

// post makes one attempt. retry says that the receiver may take the batch later: the statuses that OTLP names for that.
func post(ctx context.Context, c *http.Client, u *url.URL, headers http.Header, body []byte) (retry bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return false, fmt.Errorf("export: %w", err)
	}
	req.Header = headers
	resp, err := c.Do(req)
	if err != nil {
		return false, fmt.Errorf("export to %s: %w", u.Redacted(), err)
	}
	defer resp.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if resp.StatusCode/100 == 2 {
		return false, nil
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		retry = true
	}
	return retry, fmt.Errorf("export to %s: the receiver answered %s: %s",
		u.Redacted(), resp.Status, fit(text.VisibleLine(string(said)), 300))
}
