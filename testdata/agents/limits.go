package main

import (
	"fmt"
	"time"
)

// The answers by which the real APIs say that an account's allowance is used up.

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

func googleLimit(reset time.Time) answer {
	return answer{status: 429, body: fmt.Sprintf(`{"error":{"code":429,"message":"You have exhausted your capacity on this model. Your quota will reset after 3h0m0s.","status":"RESOURCE_EXHAUSTED",`+
		`"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"QUOTA_EXHAUSTED","domain":"cloudcode-pa.googleapis.com","metadata":{"quotaResetDelay":"3h0m0s"}},`+
		`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"%ds"}]}}`, int(time.Until(reset).Seconds()))}
}

func chatLimit(reset time.Time) answer {
	return answer{status: 429, body: `{"error":{"type":"usage_limit_reached","code":"usage_limit_reached","message":"The usage limit has been reached"}}`,
		headers: map[string]string{"retry-after": fmt.Sprint(int(time.Until(reset).Seconds()))}}
}
