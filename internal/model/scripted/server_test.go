package scripted_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/model/scripted"
)

func TestSmoke(t *testing.T) {
	s, err := scripted.Start(&scripted.Script{Worker: []scripted.Step{{Content: "hi", Tools: []scripted.Tool{{Name: "bash", Args: json.RawMessage(`{"command":"ls"}`)}}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, stream := range []bool{false, true} {
		c := model.New(model.Endpoint{BaseURL: s.URL, Model: "m"}, model.Options{Stream: stream})
		r, err := c.Chat(context.Background(), model.Request{
			Messages: []json.RawMessage{json.RawMessage(`{"role":"user","content":"x"}`)},
			Tools:    json.RawMessage(`[{"type":"function","function":{"name":"submit_case"}}]`),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v %s", r, r.Message)
	}
	t.Logf("%s", s.Requests()[0].Body)
	t.Log(s.Requests()[0].Header)
}
