package model

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// seconds converts seconds without overflow; negative values are 0.
func seconds(s float64) time.Duration {
	const most = 1 << 33 // within the range of time.Duration and time.Time
	if math.IsNaN(s) {
		return 0
	}
	return time.Duration(max(0, min(s, most)) * float64(time.Second))
}

// parseInstant reads a time: RFC 3339, an HTTP date, or seconds or milliseconds since 1970.
func parseInstant(s string) (time.Time, bool) {
	s = strings.TrimSpace(s)
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, true
	}
	if t, err := http.ParseTime(s); err == nil {
		return t, true
	}
	v, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || math.IsNaN(v) || v < 1e9 || v > 1e14:
		return time.Time{}, false
	case v >= 1e11:
		return time.UnixMilli(int64(v)), true
	}
	return time.Unix(int64(v), 0), true
}

// parseReset reads the value of a reset header, relative to now: a time, a number of seconds, or a duration like 6m0s.
func parseReset(s string, now time.Time) (time.Time, bool) {
	if t, ok := parseInstant(s); ok {
		return t, true
	}
	s = strings.TrimSpace(s)
	if v, err := strconv.ParseFloat(s, 64); err == nil && v >= 0 && v < 1e9 {
		return now.Add(seconds(v)), true
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(d), true
	}
	return time.Time{}, false
}

// retryAfter reads Retry-After: seconds, fractions of seconds, or an HTTP date.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	at, ok := parseReset(h.Get("Retry-After"), now)
	return max(0, at.Sub(now)), ok
}

// headerReset returns the latest reset time in the headers for a used up allowance. Endpoints send these headers with
// every answer, so it skips an allowance with a remaining count above 0.
func headerReset(h http.Header, now time.Time) time.Time {
	var latest time.Time
	for name, values := range h {
		lower := strings.ToLower(name)
		if len(values) == 0 || !strings.Contains(lower, "ratelimit") || !strings.Contains(lower, "reset") {
			continue
		}
		remaining := strings.TrimSpace(h.Get(strings.Replace(lower, "reset", "remaining", 1)))
		if v, err := strconv.ParseFloat(remaining, 64); err == nil && v > 0 {
			continue
		}
		if t, ok := parseReset(values[0], now); ok && t.After(latest) {
			latest = t
		}
	}
	return latest
}

// reset returns the end of a limit from the error object, else from the headers, else zero. OpenRouter passes on the
// provider's headers.
func (e *errorObject) reset(h http.Header, now time.Time) time.Time {
	if e != nil {
		if at, ok := parseInstant(scalar(e.whole.Get("resets_at"))); ok {
			return at
		}
		if in, ok := number(e.whole.Get("resets_in_seconds")); ok && in > 0 {
			return now.Add(seconds(in))
		}
		passedOn := http.Header{}
		e.whole.Get("metadata.headers").ForEach(func(name, v gjson.Result) bool {
			passedOn.Set(textOf(name), scalar(v))
			return true
		})
		if t := headerReset(passedOn, now); !t.IsZero() {
			return t
		}
	}
	if t := headerReset(h, now); !t.IsZero() {
		return t
	}
	if d, ok := retryAfter(h, now); ok && d > 0 {
		return now.Add(d)
	}
	return resetInWords(e.words(), now)
}

// resetWords matches the wait in an endpoint's message, such as "try again in 6m0s" or "resets in 3 hours 20 minutes".
var resetWords = pattern.New(`(?i)\b(?:try again|retry|resets?) (?:in|after) (?:((?:[\d.]+[hms]+)+)|` +
	`(\d{1,6}) (day|hour|minute|second)s?(?:,? (?:and )?(\d{1,6}) (hour|minute|second)s?)?)`)

// resetInWords returns the end of a limit by an endpoint's message, zero if the message has none.
func resetInWords(said string, now time.Time) time.Time {
	m := resetWords().FindStringSubmatch(said)
	if m == nil {
		return time.Time{}
	}
	if m[1] != "" {
		at, _ := parseReset(m[1], now)
		return at
	}
	units := map[string]float64{"day": 86400, "hour": 3600, "minute": 60, "second": 1}
	first, _ := strconv.ParseFloat(m[2], 64)
	more, _ := strconv.ParseFloat(m[4], 64)
	return now.Add(seconds(first*units[strings.ToLower(m[3])] + more*units[strings.ToLower(m[5])]))
}
