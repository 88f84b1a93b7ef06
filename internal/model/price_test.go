package model

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A call without a reported cost is booked at the configured price, else at the price in the list.
func TestCallsWithoutACostAreBookedAtAPrice(t *testing.T) {
	const listed = `{"data":[{"id":"m","pricing":{"prompt":"2","completion":"3"}}]}`
	for name, test := range map[string]struct {
		set   *Price
		list  string
		usage string
		cost  float64
		known bool
		lists int
	}{
		"listed":   {nil, listed, `{"prompt_tokens":10,"completion_tokens":1}`, 23, true, 1},
		"set":      {&Price{Prompt: 1}, listed, `{"prompt_tokens":10,"completion_tokens":1}`, 10, true, 0},
		"reported": {nil, listed, `{"prompt_tokens":10,"completion_tokens":1,"cost":7}`, 7, true, 0},
		"no usage": {nil, listed, `{}`, 0, false, 0},
		"no price": {nil, `{"data":[{"id":"m"}]}`, `{"prompt_tokens":10,"completion_tokens":1}`, 0, false, 1},
		"no list":  {nil, `<html>`, `{"prompt_tokens":10,"completion_tokens":1}`, 0, false, 1},
	} {
		lists := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, listPath) {
				lists++
				io.WriteString(w, test.list)
				return
			}
			io.WriteString(w, `{"choices":[{"message":{"content":"x"}}],"usage":`+test.usage+`}`)
		}))
		c, err := New(Endpoint{BaseURL: server.URL, Model: "m"}, Options{Price: test.set})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			reply, err := c.Chat(t.Context(), Request{})
			if err != nil {
				t.Fatal(err)
			}
			if u := reply.Usage; u.Cost != test.cost || u.CostKnown != test.known {
				t.Errorf("%s: %+v", name, u)
			}
		}
		if lists != test.lists {
			t.Errorf("%s: the list was read %d times", name, lists)
		}
		server.Close()
	}
}
