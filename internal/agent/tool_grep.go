package agent

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/git-tilth/git-tilth/internal/text"
)

const (
	grepCap     = 200      // matching lines of one call
	grepLine    = 300      // characters of a line
	grepFileCap = 16 << 20 // larger files are skipped and counted
	grepOutCap  = 48 << 10 // bytes of the answer
)

// search is a running grep.
type search struct {
	re      *regexp.Regexp
	out     strings.Builder
	lines   int
	files   int
	tooBig  int // number of files that are too large
	stopped bool
}

func (b *BuiltinTools) grep(ctx context.Context, in arguments) (ToolAnswer, error) {
	re, err := regexp.Compile(in.text["pattern"])
	if err != nil {
		return ToolAnswer{}, fmt.Errorf("the pattern is not a valid regular expression (RE2): %w", err)
	}
	q, err := b.widen(in.query)
	if err != nil {
		return ToolAnswer{}, err
	}
	s := &search{re: re}
	cut, err := b.walk(ctx, q, func(name string, d fs.DirEntry) error {
		if d.Type().IsRegular() {
			b.searchFile(s, name)
		}
		if s.stopped {
			return fs.SkipAll
		}
		return nil
	})
	if err != nil {
		return ToolAnswer{}, err
	}
	return s.result(in.query.pattern, cut), nil
}

// checkPathGlob is checkGlob for an optional argument.
func checkPathGlob(b *BuiltinTools, in *arguments) error {
	if strings.TrimSpace(in.text["path_glob"]) == "" {
		in.text["path_glob"] = "**"
	}
	return checkGlob("path_glob")(b, in)
}

// widen reads a path_glob as people write it: a directory means everything below it, a pattern without a slash means
// any file with that name.
func (b *BuiltinTools) widen(q query) (query, error) {
	if info, err := b.root.Stat(q.pattern); err == nil {
		if info.IsDir() {
			return b.newQuery(strings.TrimSuffix(q.pattern, "/") + "/**")
		}
		return q, nil
	}
	if !strings.Contains(q.pattern, "/") {
		return b.newQuery("**/" + q.pattern)
	}
	return q, nil
}

func (b *BuiltinTools) searchFile(s *search, name string) {
	data, _, err := b.read(name, name, grepFileCap)
	switch {
	case err != nil: // not text, or not readable
	case len(data) > grepFileCap:
		s.tooBig++
	default:
		s.files++
		s.scan(name, data)
	}
}

// scan matches line by line, so that a pattern never spans two lines.
func (s *search) scan(name string, data []byte) {
	n := 0
	for line := range bytes.Lines(data) {
		n++
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if !s.re.Match(line) {
			continue
		}
		if s.lines >= grepCap || s.out.Len() > grepOutCap {
			s.stopped = true
			return
		}
		s.lines++
		fmt.Fprintf(&s.out, "%s:%d:%s\n", name, n, text.Clip(string(line), grepLine))
	}
}

func (s *search) result(glob string, cut bool) ToolAnswer {
	out := s.out.String()
	switch {
	case s.lines == 0 && s.files == 0 && s.tooBig == 0:
		out = "no text file matches " + text.Clip(glob, 200) + "\n"
	case s.lines == 0:
		out = fmt.Sprintf("no match in %d files\n", s.files)
	case s.stopped:
		out += fmt.Sprintf("[only the first %d matching lines are shown; narrow the pattern or path_glob]\n", s.lines)
	}
	if s.tooBig > 0 {
		out += fmt.Sprintf("[%d files are too large to be searched]\n", s.tooBig)
	}
	if cut {
		out += "[the search was ended after too many files; narrow path_glob]\n"
	}
	return ToolAnswer{Output: out}
}
