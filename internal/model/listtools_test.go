package model

import "testing"

// TestAListSaysWhoCallsTools: a list that does not mention tools leaves the question open.
func TestAListSaysWhoCallsTools(t *testing.T) {
	list := readModels([]byte(`{"data": [
		{"id": "silent"},
		{"id": "with", "supported_parameters": ["temperature", "tools"]},
		{"id": "without", "supported_parameters": ["temperature"]},
		{"id": "calls", "capabilities": {"function_calling": true}},
		{"id": "talks", "capabilities": {"function_calling": false}}]}`))
	want := map[string]bool{"without": true, "talks": true}
	for _, m := range list {
		if m.NoTools != want[m.ID] {
			t.Errorf("%s: NoTools is %v", m.ID, m.NoTools)
		}
	}
	if len(list) != 5 {
		t.Errorf("%d models", len(list))
	}
}
