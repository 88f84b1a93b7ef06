package main

import (
	"fmt"
	"time"
)

// The real APIs' answers for a used up allowance.

func anthropicLimit(reset time.Time) answer {
	return answer{status: 429, body: `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your account's rate limit. Please try again later."}}`,
		headers: map[string]string{
			"anthropic-ratelimit-unified-status":               "rejected",
			"anthropic-ratelimit-unified-reset":                fmt.Sprint(reset.Unix()),
			"anthropic-ratelimit-unified-representative-claim": "five_hour",
			"anthropic-ratelimit-unified-5h-status":            "rejected",
			"anthropic-ratelimit-unified-5h-reset":             fmt.Sprint(reset.Unix()),
			"anthropic-ratelimit-unified-5h-utilization":       "1.0",
			"retry-after":    "10800",
			"x-should-retry": "false",
		}}
}

func openAILimit(reset time.Time) answer {
	return answer{status: 429, body: fmt.Sprintf(`{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_at":%d,"resets_in_seconds":%d}}`,
		reset.Unix(), int(time.Until(reset).Seconds()))}
}
