package view

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// field is a member of a payload that the page's index, a filter or a table needs.
type field int

const (
	fTask field = iota
	fIter
	fPhase
	fPrompt
	fEval
	fCached
	fReasoning
	fCost
	fTotal
	fHealth
	fVerdict
	fAccept
	fCategory
	fConcern
	fNextStep
	fParseFailed
	fPassed
	fReason
	fSHA
	fOutcome
	fLastStop
	fRole
	fTool
	fieldCount
)

// fieldOf finds a payload member by the name it has in the record.
func fieldOf(key []byte) (field, bool) {
	switch string(key) {
	case "task_id":
		return fTask, true
	case "iter":
		return fIter, true
	case "phase":
		return fPhase, true
	case "prompt_tokens":
		return fPrompt, true
	case "eval_tokens":
		return fEval, true
	case "cached_tokens":
		return fCached, true
	case "reasoning_tokens":
		return fReasoning, true
	case "cost":
		return fCost, true
	case "tokens_used_total":
		return fTotal, true
	case "health":
		return fHealth, true
	case "verdict":
		return fVerdict, true
	case "accept":
		return fAccept, true
	case "rejection_category":
		return fCategory, true
	case "concern":
		return fConcern, true
	case "next_step":
		return fNextStep, true
	case "parse_failed":
		return fParseFailed, true
	case "passed":
		return fPassed, true
	case "reason":
		return fReason, true
	case "sha":
		return fSHA, true
	case "outcome":
		return fOutcome, true
	case "last_stop":
		return fLastStop, true
	case "role":
		return fRole, true
	case "tool":
		return fTool, true
	}
	return 0, false
}

// raw is the JSON text of a payload member, nil where there is none.
func (s *safeJSON) raw(f field) []byte {
	if at := s.fields[f]; at.ok() {
		return at.of(s.in)
	}
	return nil
}

// str is a member that should be a string; anything else counts as absent.
func (s *safeJSON) str(f field) string { return plainString(s.raw(f)) }

// num is a member that should be a number; anything else counts as 0.
func (s *safeJSON) num(f field) float64 {
	n, err := strconv.ParseFloat(string(s.raw(f)), 64)
	if err != nil || math.IsInf(n, 0) {
		return 0
	}
	return n
}

func (s *safeJSON) isTrue(f field) bool { return string(s.raw(f)) == "true" }

// plainString decodes a JSON string; it allocates little for the usual case of
// one without escapes.
func plainString(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	body := raw[1 : len(raw)-1]
	for _, c := range body {
		if c == '\\' || c >= utf8.RuneSelf {
			var v string
			if json.Unmarshal(raw, &v) != nil {
				return ""
			}
			return v
		}
	}
	return string(body)
}

// eventTime reads a timestamp of the record; ok is false for what is none. The
// form that this program writes is read without allocation, because a page reads
// a million of them.
func eventTime(raw []byte) (t time.Time, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return time.Time{}, false
	}
	body := raw[1 : len(raw)-1]
	if ms, ok := quickMillis(body); ok {
		return time.UnixMilli(ms).UTC(), true
	}
	t, err := time.Parse(time.RFC3339Nano, string(body))
	return t.UTC(), err == nil
}

// quickMillis reads 2006-01-02T15:04:05[.fraction]Z.
func quickMillis(b []byte) (int64, bool) {
	if len(b) < 20 || b[4] != '-' || b[7] != '-' || b[10] != 'T' || b[13] != ':' || b[16] != ':' || b[len(b)-1] != 'Z' {
		return 0, false
	}
	y, ok1 := digits(b[0:4])
	mo, ok2 := digits(b[5:7])
	d, ok3 := digits(b[8:10])
	h, ok4 := digits(b[11:13])
	mi, ok5 := digits(b[14:16])
	s, ok6 := digits(b[17:19])
	if !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6) || mo < 1 || mo > 12 || d < 1 || d > 31 || h > 23 || mi > 59 || s > 59 {
		return 0, false
	}
	ms := int64(0)
	if frac := b[19 : len(b)-1]; len(frac) > 0 {
		if frac[0] != '.' || len(frac) < 2 {
			return 0, false
		}
		scale := int64(100)
		for _, c := range frac[1:] {
			if c < '0' || c > '9' {
				return 0, false
			}
			ms += int64(c-'0') * scale
			scale /= 10
		}
	}
	return time.Date(y, time.Month(mo), d, h, mi, s, 0, time.UTC).UnixMilli() + ms, true
}

func digits(b []byte) (n int, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}
