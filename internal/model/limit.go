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
	return ResetIn(e.words(), now)
}

// resetWords matches the wait in a message, such as "try again in 6m0s" or "resets in 3 hours 20 minutes".
var resetWords = pattern.New(`(?i)\b(?:try again|retry|resets?) (?:in|after) (?:((?:[\d.]+[hms]+)+)|` +
	`(\d{1,6}) (day|hour|minute|second)s?(?:,? (?:and )?(\d{1,6}) (hour|minute|second)s?)?)`)

// resetAt matches the time in a message, such as "resets 3pm (Europe/Berlin)" or "try again at Jan 3rd, 2027 5:04 PM".
var resetAt = pattern.New(`(?im)(?:resets?|again|until|available|access)\b[^\n\d|]{0,20}?\b` +
	`((?:[a-z]{3} \d{1,2}(?:st|nd|rd|th)?(?:,| at) (?:\d{4},? )?|\d{4}-\d\d-\d\d(?:T| at | ))?` +
	`\d{1,2}(?::[\d:.]+)?(?: ?[ap]m|Z|[+-]\d\d:\d\d)?)(?: \(?(UTC|[a-z_]+/[\w/+-]+)\b)?|\|(\d{10})$`)

var resetParts = strings.NewReplacer(" AT ", " ", ",", "", "1ST", "1", "2ND", "2", "3RD", "3", "TH", "", " AM", "AM",
	" PM", "PM")

// resetLayouts are the forms of a time in a message, after resetParts.
var resetLayouts = []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", "Jan 2 2006 3:04PM",
	"Jan 2 3:04PM", "Jan 2 3PM", "3:04PM", "3PM"}

// ResetIn returns the end of a limit by the message of an endpoint or agent program, zero if the message has none.
func ResetIn(said string, now time.Time) time.Time {
	if m := resetWords().FindStringSubmatch(said); m != nil && m[1] != "" {
		at, _ := parseReset(m[1], now)
		return at
	} else if m != nil {
		units := map[string]float64{"day": 86400, "hour": 3600, "minute": 60, "second": 1}
		first, _ := strconv.ParseFloat(m[2], 64)
		more, _ := strconv.ParseFloat(m[4], 64)
		return now.Add(seconds(first*units[strings.ToLower(m[3])] + more*units[strings.ToLower(m[5])]))
	}
	m := resetAt().FindStringSubmatch(said)
	if m == nil {
		return time.Time{}
	} else if m[3] != "" {
		at, _ := parseInstant(m[3])
		return at
	}
	zone := time.Local
	if m[2] != "" {
		var err error
		if zone, err = time.LoadLocation(m[2]); err != nil {
			return time.Time{}
		}
	}
	for _, layout := range resetLayouts {
		at, err := time.ParseInLocation(layout, resetParts.Replace(strings.ToUpper(m[1])), zone)
		if err != nil {
			continue
		}
		if at.Year() == 0 { // the next such time
			year, month, day := now.In(zone).Date()
			years, days := 0, 1
			if strings.HasPrefix(layout, "Jan") {
				month, day, years, days = 1, 1, 1, 0
			}
			if at = at.AddDate(year, int(month)-1, day-1); at.Before(now.Add(-time.Hour)) {
				at = at.AddDate(years, 0, days)
			}
		}
		if !strings.Contains(layout, ":05") { // round up, so that the limit has certainly ended
			at = at.Add(time.Minute)
		}
		return at
	}
	return time.Time{}
}
