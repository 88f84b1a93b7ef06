package scripted_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
)

func Example() {
	script, err := scripted.Parse([]byte(`{
		"worker": [
			{"status": 503, "headers": {"Retry-After": "0"}},
			{"expect": "add two numbers", "tools": [{"name": "write_file", "args": {"path": "add.py", "content": "..."}}]}
		]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	endpoint, err := scripted.Start(script)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer endpoint.Close()

	client, err := model.New(model.Endpoint{BaseURL: endpoint.URL, Model: "scripted"}, model.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	request := model.Request{
		Messages: []json.RawMessage{json.RawMessage(`{"role":"user","content":"add two numbers"}`)},
		Tools:    json.RawMessage(`[{"type":"function","function":{"name":"submit_case"}}]`),
	}
	_, err = client.Chat(context.Background(), request)
	fmt.Println(errors.As(err, new(*model.Failure)))
	reply, err := client.Chat(context.Background(), request)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reply.ToolCalls[0].Name, reply.ToolCalls[0].Arguments)
	// Output:
	// true
	// write_file {"path": "add.py", "content": "..."}
}
