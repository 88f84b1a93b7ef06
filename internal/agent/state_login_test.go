package agent

import "testing"

// TestSameLogin: a renewed login of the same account is copied back; everything else from a turn is discarded.
func TestSameLogin(t *testing.T) {
	const was = `{"claudeAiOauth": {"accessToken": "a", "refreshToken": "b", "expiresAt": 1, ` +
		`"subscriptionType": "max"}}`
	const codex = `{"OPENAI_API_KEY": null, "tokens": {"access_token": "a", "account_id": "x"}}`
	for _, c := range []struct {
		name, was, now string
		same           bool
	}{
		{"renewed", was, `{"claudeAiOauth": {"accessToken": "c", "refreshToken": "d", "expiresAt": 2,
			"subscriptionType": "max", "scopes": []}}`, true},
		{"renewed by Codex", codex, `{"OPENAI_API_KEY": null, "tokens": {"access_token": "b", "account_id": "x"},
			"last_refresh": "now"}`, true},
		{"of another subscription", was, `{"claudeAiOauth": {"accessToken": "c", "refreshToken": "d", "expiresAt": 2,
			"subscriptionType": "pro"}}`, false},
		{"of another account", codex, `{"OPENAI_API_KEY": null, "tokens": {"access_token": "b", "account_id": "y"}}`,
			false},
		{"a key", codex, `{"OPENAI_API_KEY": "k", "tokens": {"access_token": "b", "account_id": "x"}}`,
			false},
		{"of another program", was, codex, false},
		{"without a token", was, `{"claudeAiOauth": {"subscriptionType": "max"}}`, false},
		{"no object", was, `renewed`, false},
		{"empty", was, ``, false},
		{"the first", ``, was, false},
	} {
		if err := sameLogin([]byte(c.was), []byte(c.now)); (err == nil) != c.same {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
