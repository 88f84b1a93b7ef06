package jsonl

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func membersOf(object string) string {
	var b strings.Builder
	Members(object, func(key, raw string) bool {
		fmt.Fprintf(&b, "%s=%s;", key, raw)
		return true
	})
	return b.String()
}

func TestEachMember(t *testing.T) {
	for object, want := range map[string]string{
		`{}`: "", `[]`: "", ``: "", `5`: "", `null`: "", `"{"`: "", `{`: "", `{"a"`: "", `{"a":`: "", `{"a":}`: "",
		`{"a":1}`:                                        "a=1;",
		` { "a" : -1.5e3 , "b":true,"c":null } `:         "a=-1.5e3;b=true;c=null;",
		`{"a\n\"b":"x\\","c":"\\\"","d":"}{,"}`:          "a\n\"b=\"x\\\\\";c=\"\\\\\\\"\";d=\"}{,\";",
		`{"a":{"b":[1,{"c":"]}"}]},"d":[[],[{}]],"e":0}`: `a={"b":[1,{"c":"]}"}]};d=[[],[{}]];e=0;`,
	} {
		if got := membersOf(object); got != want {
			t.Errorf("%s: %q, want %q", object, got, want)
		}
	}
	calls := 0
	Members(`{"a":1,"b":2}`, func(string, string) bool { calls++; return false })
	if calls != 1 {
		t.Errorf("%d calls after false", calls)
	}
}

func FuzzEachMember(f *testing.F) {
	f.Add(`{"a\u0041\"":[{"b":"\\"}],"c":1e5,"d":{}}`)
	f.Add(`{"a":"\\\"","b" : [ ] }`)
	f.Fuzz(func(t *testing.T, object string) {
		got := membersOf(object)
		var want map[string]json.RawMessage
		if json.Unmarshal([]byte(object), &want) != nil || want == nil {
			return
		}
		seen := map[string]string{}
		Members(object, func(key, raw string) bool {
			if !json.Valid([]byte(raw)) {
				t.Fatalf("%q is no JSON, in %s", raw, object)
			}
			var name string
			_ = json.Unmarshal([]byte(`"`+key+`"`), &name)
			seen[key] = raw
			return true
		})
		if len(seen) != len(want) && !strings.Contains(object, `\`) && strings.ToValidUTF8(object, "") == object {
			t.Fatalf("%s: %s, want %v", object, got, want)
		}
		for key, raw := range seen {
			if value, ok := want[key]; ok && string(value) != raw {
				t.Fatalf("%s: %q is %s, want %s", object, key, raw, value)
			}
		}
	})
}
