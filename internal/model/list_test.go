package model

import (
	"reflect"
	"testing"
)

func TestReadModels(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want []Listed
	}{
		"plain":      {`{"data":[{"id":"a"}]}`, []Listed{{ID: "a"}}},
		"no list":    {`<html>`, nil},
		"no models":  {`{"data":[]}`, nil},
		"free":       {`[{"id":"a","pricing":{"prompt":"0","completion":"0"}}]`, []Listed{{ID: "a", Price: &Price{}}}},
		"of another": {`[{"id":"a","pricing":{"prompt":"-1","completion":"-1"}}]`, []Listed{{ID: "a"}}},
		"half":       {`[{"id":"a","pricing":{"prompt":"1"}}]`, []Listed{{ID: "a"}}},
		"a token": {`{"data":[{"id":"a","pricing":{"prompt":"0.5","completion":"2","request":"3"}}]}`,
			[]Listed{{ID: "a", Price: &Price{0.5, 2, 3}}}},
		"a million": {`[{"id":"a","pricing":{"input":1,"output":4}}]`,
			[]Listed{{ID: "a", Price: &Price{Prompt: 1e-6, Answer: 4e-6}}}},
	} {
		if got := readModels([]byte(test.body)); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
