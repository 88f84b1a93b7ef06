package view

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/git-tilth/git-tilth/internal/text"
)

// fileSink writes a file in one of the encodings of OTLP.
type fileSink struct {
	f      *os.File
	path   string
	out    *bufio.Writer
	format string
	n      int // batches
}

// Encodings of a file.
const (
	formatJSON  = "json"  // one document
	formatLines = "jsonl" // one document a line, as the collector's file receiver reads them
	formatProto = "proto" // one message: protobuf messages of one type add up when they are joined
)

func newFileSink(path string) (*fileSink, error) {
	format := formatJSON
	switch strings.ToLower(filepath.Ext(path)) {
	case ".jsonl", ".ndjson":
		format = formatLines
	case ".pb", ".binpb", ".protobuf", ".proto", ".otlp":
		format = formatProto
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	return &fileSink{f: f, path: path, out: bufio.NewWriterSize(f, 256<<10), format: format}, nil
}

func (s *fileSink) write(t ptrace.Traces) error {
	s.n++
	if s.format == formatProto {
		data, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(t)
		if err == nil {
			_, err = s.out.Write(data)
		}
		return err
	}
	data, err := (&ptrace.JSONMarshaler{}).MarshalTraces(t)
	if err != nil {
		return err
	}
	if s.format == formatLines {
		s.out.Write(data)
		return s.out.WriteByte('\n')
	}
	inner, ok := bytes.CutPrefix(data, []byte(jsonOpen))
	inner, ok2 := bytes.CutSuffix(inner, []byte(jsonClose))
	if !ok || !ok2 {
		return errors.New("export: the JSON encoding of traces is not the one that was expected")
	}
	if s.n == 1 {
		s.out.WriteString(jsonOpen)
	} else {
		s.out.WriteByte(',')
	}
	_, err = s.out.Write(inner)
	return err
}

// What a document of traces begins and ends with; between them stand the batches.
const (
	jsonOpen  = `{"resourceSpans":[`
	jsonClose = `]}`
)

func (s *fileSink) close() error {
	if s.format == formatJSON {
		if s.n == 0 {
			s.out.WriteString(jsonOpen)
		}
		s.out.WriteString(jsonClose + "\n")
	}
	err := s.out.Flush()
	if cerr := s.f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(s.f.Name(), s.path)
	}
	if err != nil {
		os.Remove(s.f.Name())
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

func (s *fileSink) abort() {
	s.f.Close()
	os.Remove(s.f.Name())
}

// httpSink sends OTLP over HTTP as protobuf.
type httpSink struct {
	ctx     context.Context
	url     string
	shown   string // the URL without its password
	headers http.Header
	client  *http.Client
}

// sendTries bounds how often a batch is sent again when the receiver is busy.
const sendTries = 5

func newHTTPSink(ctx context.Context, u *url.URL, getenv func(string) string) *httpSink {
	h := http.Header{}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		for pair := range strings.SplitSeq(getenv(name), ",") {
			k, v, ok := strings.Cut(pair, "=")
			if value, err := url.PathUnescape(strings.TrimSpace(v)); ok && err == nil {
				h.Set(strings.TrimSpace(k), value)
			}
		}
	}
	h.Set("Content-Type", "application/x-protobuf")
	h.Set("Content-Encoding", "gzip")
	return &httpSink{ctx: ctx, url: u.String(), shown: u.Redacted(), headers: h, client: &http.Client{Timeout: 60 * time.Second}}
}

func (s *httpSink) write(t ptrace.Traces) error {
	data, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(t)
	if err != nil {
		return err
	}
	var body bytes.Buffer
	zip := gzip.NewWriter(&body)
	zip.Write(data)
	if err := zip.Close(); err != nil {
		return err
	}
	for try := 1; ; try++ {
		retry, err := s.send(body.Bytes())
		if err == nil || !retry || try == sendTries {
			return err
		}
		if !wait(s.ctx, time.Duration(try)*time.Second) {
			return s.ctx.Err()
		}
	}
}

// send makes one attempt. retry says that the receiver may take the batch later: the
// statuses that OTLP names for that.
func (s *httpSink) send(body []byte) (retry bool, err error) {
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return false, fmt.Errorf("export: %w", err)
	}
	req.Header = s.headers
	resp, err := s.client.Do(req)
	if err != nil {
		return false, fmt.Errorf("export to %s: %w", s.shown, err)
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
	return retry, fmt.Errorf("export to %s: the receiver answered %s: %s", s.shown, resp.Status, fit(text.VisibleLine(string(said)), 300))
}

func (s *httpSink) close() error { return nil }

// abort cannot take back what a receiver has.
func (s *httpSink) abort() {}
