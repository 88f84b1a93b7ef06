package view

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Count formats a number of tokens: 950, 12.3k, 412k, 1.24M.
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

// decimal formats a number with at most places decimals and without trailing zeros.
func decimal(v float64, places int) string {
	s := strconv.FormatFloat(v, 'f', places, 64)
	if places > 0 {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// Money returns an amount in dollars: $0.42, and $0.0031 below a cent.
func Money(v float64) string {
	if v > 0 && v < 0.01 {
		return "$" + strconv.FormatFloat(v, 'f', 4, 64)
	}
	return "$" + strconv.FormatFloat(v, 'f', 2, 64)
}

// Span returns a duration in the two units that matter: 42s, 12m, 3h 5m, 2d 4h.
func Span(d time.Duration) string {
	s := max(d, 0) / time.Second
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm", s/60)
	case s < 86400:
		return strings.TrimSuffix(fmt.Sprintf("%dh %dm", s/3600, s%3600/60), " 0m")
	}
	return strings.TrimSuffix(fmt.Sprintf("%dd %dh", s/86400, s%86400/3600), " 0h")
}

// age returns the time since t in words; "" if t is unknown.
func age(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return Span(now.Sub(t)) + " ago"
}

// percent returns a share of a cap, rounded down: a cap that is not reached must not look as if it were.
func percent(used, limit float64) string {
	if limit <= 0 {
		return ""
	}
	return fmt.Sprintf("%d%%", int(used/limit*100))
}
