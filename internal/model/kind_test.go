package model

import "testing"

// The words of vendors for a conversation that is too long, and for an account's limits, with their honest twins.
func TestKindOfWords(t *testing.T) {
	for _, c := range []struct {
		status int
		kind   Kind
		said   string
	}{
		{413, Overflow, "Request Entity Too Large"},
		{413, Overflow, "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 7000"},
		{400, Overflow, "the input token count (1200000) exceeds the maximum number of tokens allowed (1048576)"},
		{400, Overflow, "the input token count is 40000 but model only supports up to 32768"},
		{400, Overflow, "Input Tokens Exceeded: Number of input tokens exceeds maximum length"},
		{400, Overflow, "The decoder prompt (length 5000) is longer than the maximum model length of 4096."},
		{400, Overflow, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."},
		{400, Overflow, "too many tokens: total number of tokens in the prompt exceeds the limit of 4081"},
		{400, Overflow, "Please reduce the length of the messages or completion."},
		{400, Overflow, "prompt token count of 70543 exceeds the limit of 64000"},
		{422, Overflow, "`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens"},
		{422, Overflow, "`inputs` must have less than 1024 tokens. Given: 2000"},
		{400, Overflow, "Range of input length should be [1, 129024]"},
		{400, Overflow, "1261 Prompt exceeds max length"},
		{400, Overflow, "Your request exceeded model token limit: 131072 (requested: 200000)"},
		{400, Overflow, "litellm.ContextWindowExceededError"},
		{400, Fatal, "max_tokens exceeds the maximum of 8192 output tokens"},
		{400, Fatal, "messages.3: tool_use ids were found without tool_result blocks"},
		{503, HTTP, "request queue exceeds 100 entries"},
		{429, HTTP, "would exceed the rate limit of 30,000 input tokens per minute. Please reduce the prompt length"},
		{429, HTTP, "have exceeded the token rate limit of your current pricing tier. Retry after 6 seconds."},
		{429, HTTP, "You've reached your rate limit"},
		{429, UsageLimit, "Rate limit reached on tokens per day (TPD): Limit 100000, Used 99000"},
		{429, UsageLimit, "Rate limit exceeded: free-models-per-day"},
		{429, UsageLimit, "You've reached your spending limit"},
		{403, UsageLimit, "You have exceeded your monthly included credits"},
		{0, UsageLimit, "You've reached your Fable 5 limit"},
		{0, UsageLimit, "You're out of extra usage · resets 5pm"},
		{0, UsageLimit, "You have exceeded your premium request allowance"},
		{0, HTTP, "Server is temporarily limiting requests (not your usage limit)"},
	} {
		if got := KindOf(c.status, c.said); got != c.kind {
			t.Errorf("%d %s: %s, want %s", c.status, c.said, got, c.kind)
		}
	}
}

// An error object in an answer with status 200 is a failure of the same kinds.
func TestKindOfErrorObjects(t *testing.T) {
	for body, kind := range map[string]Kind{
		`{"message":"maximum prompt length is 131072","type":"invalid_request_error"}`:                    Overflow,
		`{"message":"Prompt exceeds max length","code":400}`:                                              Overflow,
		`{"message":"unknown field","type":"invalid_request_error"}`:                                      Fatal,
		`{"message":"no such model","code":404}`:                                                          Fatal,
		`{"message":"Provider returned error","code":400}`:                                                ErrorObject,
		`{"message":"input tokens exceed 5 requests","code":429}`:                                         ErrorObject,
		`{"message":"would exceed 30,000 input tokens per minute. Please reduce the prompt","code":null}`: ErrorObject,
		`{"message":"Daily limit reached","code":429}`:                                                    UsageLimit,
		`{"message":"Insufficient","code":402}`:                                                           UsageLimit,
	} {
		if _, f := parseReply([]byte(`{"error":` + body + `}`)); f == nil || f.Kind != kind {
			t.Errorf("%s: %+v, want %s", body, f, kind)
		}
	}
}
