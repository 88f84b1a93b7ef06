package scripted

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestScriptErrors(t *testing.T) {
	for in, want := range map[string]string{
		``:                                   "EOF",
		`[]`:                                 "line 1",
		`{"worker":[{"contents":"x"}]}`:      "contents",
		`{"workers":[]}`:                     "workers",
		"{\n\"worker\":[\n{\"content\":5}]}": "line 3",
		"{\n\"worker\":[\n{\"content\":}]}":  "line 3",
		`{} {}`:                              "more than one",
		`{"worker":[{"content":"a"},{"repeat":-2}]}`: "worker, step 2: repeat",
		`{"worker":[{"status":42}]}`:                 "status 42",
		`{"worker":[{"tools":[{"args":{}}]}]}`:       "without a name",
		`{"worker":[{"usage":5}]}`:                   "usage",
		`{"worker":[{"message":"m"}]}`:               "message",
		`{"worker":[{"delay_ms":-1}]}`:               "negative",
		`{"worker":[{"expect":5}]}`:                  "line 1",
	} {
		if _, err := Parse([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
	path := filepath.Join(t.TempDir(), "script.json")
	if _, err := Load(path); err == nil {
		t.Error("a file that does not exist was loaded")
	}
	os.WriteFile(path, []byte(`{"worker":[`), 0o600)
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	os.WriteFile(path, []byte(`{"worker":[{"expect":"one","forbid":["two","three"]}]}`), 0o600)
	if s, err := Load(path); err != nil || len(s.Worker[0].Expect) != 1 || len(s.Worker[0].Forbid) != 2 {
		t.Errorf("%v %v", s, err)
	}
}

func TestOnlyLoopback(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", "192.0.2.1:80", "example.com:80", "nonsense"} {
		if s, err := Start(&Script{}, Address(addr)); err == nil {
			s.Close()
			t.Errorf("%s was taken", addr)
		}
	}
}

func FuzzFields(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"c":"}\"]"},"messages":[{"x":"\\"},2,[]],"d":null}`))
	f.Add([]byte(`{"a":"\\\"","b":[`))
	f.Add([]byte(`[1,"two",{"three":[3]}]`))
	f.Fuzz(func(t *testing.T, in []byte) {
		top, list := fields(in), elements(in)
		var object map[string]json.RawMessage
		if json.Unmarshal(in, &object) == nil && object != nil && !bytes.ContainsRune(in, '\\') && isText(in) {
			if len(top) != len(object) {
				t.Fatalf("%d fields, want %d", len(top), len(object))
			}
			for name, want := range object {
				if string(top[name]) != string(want) {
					t.Errorf("%s: %s, want %s", name, top[name], want)
				}
			}
		}
		var array []json.RawMessage
		if json.Unmarshal(in, &array) == nil && array != nil {
			if len(list) != len(array) {
				t.Fatalf("%d elements, want %d", len(list), len(array))
			}
			for i, want := range array {
				if string(list[i]) != string(want) {
					t.Errorf("%d: %s, want %s", i, list[i], want)
				}
			}
		}
	})
}

// isText: names are compared as bytes, while the decoder replaces broken UTF-8 in them.
func isText(b []byte) bool { return bytes.Equal(b, bytes.ToValidUTF8(b, nil)) }

func FuzzParseScript(f *testing.F) {
	f.Add([]byte(`{"worker":[{"content":"a","tools":[{"name":"f","args":"x"}],"expect":"e"}],"self_improve":[]}`), []byte(`{"messages":[]}`))
	f.Fuzz(func(t *testing.T, script, request []byte) {
		s, err := Parse(script)
		if err != nil {
			return
		}
		text := newHaystack(request, fields(request)["messages"])
		for _, steps := range s.queues() {
			newQueue(steps).next(text)
			for i := range steps {
				steps[i].mismatch(text)
				turn := turn{request: Request{N: 1}, step: &steps[i]}
				if body := turn.body(); steps[i].Raw == nil && !json.Valid(body) {
					t.Errorf("the answer is no JSON: %s", body)
				}
			}
		}
	})
}
