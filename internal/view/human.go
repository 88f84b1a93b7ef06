package view

import (
	"strconv"
	"strings"
	"time"
)

// Count is a number of tokens for a person: 950, 12.3k, 412k, 1.24M.
func Count(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 99_950:
		return decimal(float64(n)/1e3, 1) + "k"
	case n < 999_500:
		return decimal(float64(n)/1e3, 0) + "k"
	}
	return decimal(float64(n)/1e6, 2) + "M"
}

// decimal has at most places digits behind the point and no zeros at its end.
func decimal(v float64, places int) string {
	s := strconv.FormatFloat(v, 'f', places, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// Money is an amount in dollars: $0.42, and $0.0031 below a cent.
func Money(v float64) string {
	if v > 0 && v < 0.01 {
		return "$" + strconv.FormatFloat(v, 'f', 4, 64)
	}
	return "$" + strconv.FormatFloat(v, 'f', 2, 64)
}

// Span is a duration in the two units that matter: 42s, 12m, 3h 5m, 2d 4h.
func Span(d time.Duration) string {
	d = max(d, 0)
	switch s := int64(d / time.Second); {
	case s < 60:
		return strconv.FormatInt(s, 10) + "s"
	case s < 3600:
		return strconv.FormatInt(s/60, 10) + "m"
	case s < 86400:
		return two(s/3600, "h", s%3600/60, "m")
	default:
		return two(s/86400, "d", s%86400/3600, "h")
	}
}

func two(a int64, unit string, b int64, smaller string) string {
	if b == 0 {
		return strconv.FormatInt(a, 10) + unit
	}
	return strconv.FormatInt(a, 10) + unit + " " + strconv.FormatInt(b, 10) + smaller
}

// age is how long ago t was, empty when t is unknown.
func age(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return Span(now.Sub(t)) + " ago"
}

// percent is a share of a cap. It is never rounded up to 100: a cap that is not reached must not look as if it were.
func percent(used, limit float64) string {
	if limit <= 0 {
		return ""
	}
	p := used / limit * 100
	if p < 100 && p > 99 {
		p = 99
	}
	return strconv.FormatFloat(p, 'f', 0, 64) + "%"
}
