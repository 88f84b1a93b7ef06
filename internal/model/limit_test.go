package model

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

func TestRetryAfter(t *testing.T) {
	tests := []struct {
		header http.Header
		want   time.Duration
		ok     bool
	}{
		{header(), 0, false},
		{header("Retry-After", "0"), 0, true},
		{header("Retry-After", "3"), 3 * time.Second, true},
		{header("Retry-After", " 1.5 "), 1500 * time.Millisecond, true},
		{header("Retry-After", "Sat, 21 Nov 2026 12:00:30 GMT"), 30 * time.Second, true},
		{header("Retry-After", "Sat, 21 Nov 2026 11:00:00 GMT"), 0, true},
		{header("Retry-After", "-1"), 0, false},
		{header("Retry-After", "NaN"), 0, false},
		{header("Retry-After", "soon"), 0, false},
		{header("Retry-After", "1e300"), 0, false},
	}
	for _, tt := range tests {
		got, ok := retryAfter(tt.header, noon)
		if got != tt.want || ok != tt.ok {
			t.Errorf("%v: %v %v, want %v %v", tt.header, got, ok, tt.want, tt.ok)
		}
	}
	if seconds(math.Inf(1)) <= 0 || seconds(math.NaN()) != 0 {
		t.Error("infinite or undefined seconds")
	}
}

func TestParseReset(t *testing.T) {
	tests := map[string]time.Time{
		"90":                            noon.Add(90 * time.Second),
		"0.5":                           noon.Add(500 * time.Millisecond),
		"6m0s":                          noon.Add(6 * time.Minute),
		"20ms":                          noon.Add(20 * time.Millisecond),
		"1795262400":                    time.Unix(1795262400, 0),
		"1795262400000":                 time.UnixMilli(1795262400000),
		"2026-11-22T00:00:00Z":          noon.Add(12 * time.Hour),
		"Sat, 21 Nov 2026 13:00:00 GMT": noon.Add(time.Hour),
		"":                              {},
		"later":                         {},
		"-5":                            {},
		"1e300":                         {},
	}
	for in, want := range tests {
		if got, ok := parseReset(in, noon); !got.Equal(want) || ok == want.IsZero() {
			t.Errorf("%q: %v %v, want %v", in, got, ok, want)
		}
	}
}

func TestStatus(t *testing.T) {
	errorWith := func(fields string) string { return `{"error":{"message":"said",` + fields + `}}` }
	minute, none := time.Minute, time.Duration(-1)
	tests := []struct {
		name   string
		status int
		header http.Header
		body   string
		kind   Kind
		wait   time.Duration
		reset  time.Time
	}{
		{"bad request", 400, nil, errorWith(`"type":"invalid_request_error"`), Fatal, none, time.Time{}},
		{"bad request without words", 400, nil, "", Fatal, none, time.Time{}},
		{"unauthorized", 401, nil, "", Fatal, none, time.Time{}},
		{"payment", 402, nil, errorWith(`"code":402`), UsageLimit, none, time.Time{}},
		{"forbidden", 403, nil, "no", Fatal, none, time.Time{}},
		{"not found", 404, nil, "<html>", Fatal, none, time.Time{}},
		{"method", 405, nil, "", Fatal, none, time.Time{}},
		{"request timeout", 408, nil, "", HTTP, none, time.Time{}},
		{"conflict", 409, nil, "", HTTP, none, time.Time{}},
		{"too large", 413, nil, "", Overflow, none, time.Time{}},
		{"unprocessable", 422, nil, `{"detail":[{"msg":"bad"}]}`, Fatal, none, time.Time{}},
		{"too early", 425, nil, "", HTTP, none, time.Time{}},
		{"server", 500, nil, "", HTTP, none, time.Time{}},
		{"gateway", 502, nil, "<html>", HTTP, none, time.Time{}},
		{"unavailable", 503, header("Retry-After", "60"), "", HTTP, minute, time.Time{}},
		{"unavailable for long", 503, header("Retry-After", "86400"), "", HTTP, 24 * time.Hour, time.Time{}},
		{"timeout of the gateway", 504, nil, "", HTTP, none, time.Time{}},
		{"overloaded", 529, nil, errorWith(`"type":"overloaded_error"`), HTTP, none, time.Time{}},

		{"slow down", 429, nil, errorWith(`"type":"rate_limit_exceeded"`), HTTP, none, time.Time{}},
		{"slow down at once", 429, header("Retry-After", "0"), "", HTTP, 0, time.Time{}},
		{"slow down a minute", 429, header("Retry-After", "60", "X-RateLimit-Reset-Requests", "24h0m0s"), "", HTTP,
			minute, time.Time{}},
		{"slow down, window of minutes", 429, header("X-RateLimit-Reset-Tokens", "2m0s", "X-RateLimit-Remaining-Tokens",
			"0"), "", HTTP, none, time.Time{}},
		{"other window is long but not used up", 429,
			header("X-RateLimit-Reset-Requests", "24h0m0s", "X-RateLimit-Remaining-Requests", "17",
				"X-RateLimit-Reset-Tokens", "1s", "X-RateLimit-Remaining-Tokens", "0"),
			"", HTTP, none, time.Time{}},
		{"a limit in words only", 429, nil, errorWith(`"type":"x"`) + "usage_limit_reached", UsageLimit, none, time.Time{}},

		{"come back in hours", 429, header("Retry-After", "7200"), "", HTTP, 2 * time.Hour, time.Time{}},
		{"day is used up", 429, header("X-RateLimit-Reset", "1795305600000", "X-RateLimit-Remaining", "0"),
			errorWith(`"code":"daily limit"`), UsageLimit, none, time.UnixMilli(1795305600000)},
		{"day is used up, told inside", 429, nil, errorWith(`"code":"quota","metadata":{"headers":{"X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1795305600000"}}`),
			UsageLimit, none, time.UnixMilli(1795305600000)},
		{"a window of hours, in headers only", 429, header("anthropic-ratelimit-unified-reset", "1795276800"), "",
			HTTP, none, time.Time{}},
		{"requests per minute", 429, nil, errorWith(`"code":"quota metric: requests per minute"`), HTTP, none, time.Time{}},
		{"full", 400, nil, errorWith(`"code":"context_length_exceeded"`), Overflow, none, time.Time{}},
		{"full in words", 413, nil, `{"error":{"message":"prompt is too long: 200001 tokens > 200000 maximum"}}`, Overflow, none,
			time.Time{}},
		{"plan, at", 429, nil, errorWith(`"type":"usage_limit_reached","resets_at":1795276800`), UsageLimit, none, time.Unix(1795276800, 0)},
		{"plan, in", 429, nil, errorWith(`"type":"usage_limit_reached","resets_in_seconds":3600`), UsageLimit, none, noon.Add(time.Hour)},
		{"plan, soon", 429, header("Retry-After", "30"), errorWith(`"type":"usage_limit_reached"`), UsageLimit, none, noon.Add(30 * time.Second)},
		{"quota", 429, nil, errorWith(`"type":"insufficient_quota","code":"insufficient_quota"`), UsageLimit, none, time.Time{}},
		{"quota as a bad request", 400, nil, errorWith(`"code":"billing_hard_limit_reached"`), UsageLimit, none, time.Time{}},

		{"redirect", 301, header("Location", "https://user:secret@elsewhere.example/v1?key=secret"), "", Fatal, none, time.Time{}},
		{"temporary redirect", 307, header("Location", "/v2/"), "", Fatal, none, time.Time{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := statusFailure(tt.status, tt.header, []byte(tt.body)).until(tt.header, noon)
			wait := none
			if f.RetryAfter != nil {
				wait = *f.RetryAfter
			}
			if f.Kind != tt.kind || wait != tt.wait || !f.LimitReset.Equal(tt.reset) {
				t.Errorf("%s wait %v reset %v, want %s %v %v", f.Kind, wait, f.LimitReset, tt.kind, tt.wait, tt.reset)
			}
			if f.Retryable() != (tt.kind == HTTP) {
				t.Errorf("retryable: %v", f.Retryable())
			}
		})
	}
}

func TestRedirectIsNamedWithoutSecrets(t *testing.T) {
	f := statusFailure(301, header("Location", "https://user:secret@elsewhere.example/v1?key=secret"), nil)
	if f.Said != "it redirects to https://elsewhere.example/v1" || f.Hint() == "" {
		t.Errorf("%q %q", f.Said, f.Hint())
	}
}

func TestErrorObjectReset(t *testing.T) {
	for in, want := range map[string]time.Time{
		`{"resets_at":1795276800}`:                                     time.Unix(1795276800, 0),
		`{"resets_at":"2026-11-22T00:00:00Z"}`:                         noon.Add(12 * time.Hour),
		`{"resets_at":"junk","resets_in_seconds":60}`:                  noon.Add(time.Minute),
		`{"resets_in_seconds":"60"}`:                                   noon.Add(time.Minute),
		`{"resets_in_seconds":-60}`:                                    {},
		`{"resets_at":{},"metadata":{"headers":{"retry-after":"10"}}}`: {},
	} {
		if got := parseErrorObject(gjson.Parse(in)).reset(nil, noon); !got.Equal(want) {
			t.Errorf("%s: %v, want %v", in, got, want)
		}
	}
}

func TestResetIn(t *testing.T) {
	local := func(month time.Month, day, hour, minute int) time.Duration {
		return time.Date(2026, month, day, hour, minute, 0, 0, time.Local).Sub(noon)
	}
	for said, want := range map[string]time.Duration{
		"Usage limit reached. Please try again in 7m12.5s.":       7*time.Minute + 12500*time.Millisecond,
		"You exceeded your current quota, please retry in 44.5s.": 44500 * time.Millisecond,
		"weekly limit reached, resets in 2 days and 3 hours":      51 * time.Hour,
		"Your usage limit resets in 1 hour, 20 minutes.":          80 * time.Minute,
		"quota exceeded, try again after 3 seconds":               3 * time.Second,
		"Your quota will reset after 3h20m5s.":                    3*time.Hour + 20*time.Minute + 5*time.Second,
		"the limit of 5 hours is used up":                         0,
		"try again in a few minutes":                              0,
		"resets in 9999999 days":                                  0,

		"usage limit reached, resets at 2026-11-21T23:00:00Z":             11 * time.Hour,
		"429: try again after 2026-11-21T23:00:00.5+01:00":                10*time.Hour + 500*time.Millisecond,
		"2026-11-26T23:00:00Z ERROR 429 Too Many Requests":                0,
		"resets at 2026-99-26T23:00:00Z":                                  0,
		"usage limit. You will regain access on 2026-12-01 at 00:00 UTC.": 228*time.Hour + time.Minute,
		"Claude AI usage limit reached|1795276800":                        time.Unix(1795276800, 0).Sub(noon),

		"5-hour limit reached ∙ resets 3pm (UTC)":                        3*time.Hour + time.Minute,
		"You've hit your limit · resets 2:30am (Europe/Berlin)":          13*time.Hour + 31*time.Minute,
		"Weekly limit reached ∙ resets Nov 23 at 1pm (America/New_York)": 54*time.Hour + time.Minute,
		"Weekly limit reached ∙ resets Jan 2, 1pm (UTC)":                 42*24*time.Hour + time.Hour + time.Minute,
		"resets 3pm (Nowhere/Else)":                                      0,
		"resets 99pm":                                                    0,
		"You've hit your usage limit. Try again at 11:58 AM (UTC).":      -time.Minute, // it has just ended
		"or try again at Jan 3rd, 2027 5:04 PM.":                         local(13, 3, 17, 5),
		"Your limit will reset at 2026-12-01 10:00:00":                   local(12, 1, 10, 0),
	} {
		got := ResetIn(said, noon)
		if want == 0 != got.IsZero() || want != 0 && !got.Equal(noon.Add(want)) {
			t.Errorf("%q: %v, want in %v", said, got, want)
		}
	}
}
