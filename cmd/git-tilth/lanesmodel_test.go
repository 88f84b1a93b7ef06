package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// crew answers for all workers and reviewers of a session with lanes. An answer depends on the request and on chance
// only, so it works after any resume, in any order.
type crew struct {
	t    *testing.T
	url  string
	calm atomic.Bool // no more random failures

	mu       sync.Mutex
	fate     *rand.Rand
	kinds    map[string][]string // changes of each task's worker
	hopeless map[string]bool     // impossible tasks
	rejects  map[string]int      // how often each is sent back
	shown    map[string]bool     // stashed work shown to workers
	binary   map[string][]string // binary contents of each task's worker
	calls    int
}

// kinds are the actions of workers. %[1]s is the task, %[2]s the text that it writes and reports. No worker removes
// another one's text, so a missing text was lost.
var kinds = map[string]string{
	"own":    `echo %[2]s >> own-%[1]s`,
	"dir":    `mkdir -p dir/%[1]s; echo %[2]s >> dir/%[1]s/file`,
	"shared": `echo %[2]s >> shared`,
	"line":   `if grep -q '^line 4$' lines; then sed -i 's/^line 4$/%[2]s/' lines; else echo %[2]s >> lines; fi`,
	"top":    `sed -i '1i %[2]s' lines`,
	"base":   `echo %[2]s >> base`,
	"delete": `grep -qs tok- base || { git rm -q --cached base; rm -f base; }; echo %[2]s >> own-%[1]s`,
	"rename": `test -e base && test ! -e moved && mv base moved; echo %[2]s >> own-%[1]s`,
	"binary": `printf '%%s\n\0' %[2]s >> binary`,
	"place":  `test -d place && echo %[2]s >> place/%[1]s || echo %[2]s >> place`,
	"places": `test -f place && echo %[2]s >> place || { mkdir -p place; echo %[2]s >> place/%[1]s; }`,
	"mode":   `chmod +x lines; echo %[2]s >> own-%[1]s`,
	"link":   `test -L link || ln -s %[2]s link; echo %[2]s >> own-%[1]s`,
	"raw":    `echo RAW %[2]s >> raw-%[1]s`,
	"bad":    `test -e own-%[1]s || touch bad; echo %[2]s >> own-%[1]s`,
	"commit": `echo %[2]s >> own-%[1]s; git add -A; git commit -q -m mine`,
}

var (
	yourTask = regexp.MustCompile(`# (?:Your|The) task: (T-\d+)`)
	token    = regexp.MustCompile(`tok-[0-9]+-[0-9a-z]+`)
)

// startCrew starts the endpoint.
func startCrew(t *testing.T, fate *rand.Rand) *crew {
	c := &crew{t: t, fate: fate, kinds: map[string][]string{}, hopeless: map[string]bool{}, rejects: map[string]int{},
		shown: map[string]bool{}, binary: map[string][]string{}}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.url = server.URL + "/v1"
	return c
}

// asked are the fields of a request.
type asked struct {
	Messages []struct {
		Role    string
		Content string
	}
	Tools []struct{ Function struct{ Name string } }
}

func (q asked) offers(tool string) bool {
	for _, t := range q.Tools {
		if t.Function.Name == tool {
			return true
		}
	}
	return false
}

func (q asked) task() string {
	for _, m := range q.Messages {
		if found := yourTask.FindStringSubmatch(m.Content); m.Role == "user" && found != nil {
			return found[1]
		}
	}
	return ""
}

func (c *crew) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q asked
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil && r.Method == http.MethodPost {
		return // the client left
	}
	w.Header().Set("Content-Type", "application/json")
	c.mu.Lock()
	status, answer, wait := c.answer(q)
	c.mu.Unlock()
	select {
	case <-time.After(wait):
	case <-r.Context().Done():
		return
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(answer))
}

func (c *crew) answer(q asked) (status int, answer string, wait time.Duration) {
	c.calls++
	wait = time.Duration(c.fate.IntN(40)) * time.Millisecond
	if !c.calm.Load() && len(q.Tools) > 0 {
		switch c.fate.IntN(120) {
		case 0:
			return 429, `{"error": {"type": "usage_limit_reached", "message": "used up", "resets_in_seconds": 1}}`, wait
		case 1, 2:
			return 503, `{"error": {"message": "out of order"}}`, wait
		}
	}
	switch task := q.task(); {
	case q.offers("submit_verdict"):
		return 200, c.review(task), wait
	case q.offers("submit_case"):
		return 200, c.work(task, q), wait
	}
	return 200, said(`{"propose": "no", "learning": ""}`), wait
}

func (c *crew) review(task string) string {
	if c.rejects[task] > 0 {
		c.rejects[task]--
		return c.call("submit_verdict", map[string]any{"verdict": "reject", "rejection_category": "half_finished",
			"concern": fmt.Sprintf("%d more are missing", c.rejects[task]+1), "next_step": "go on"})
	}
	return c.call("submit_verdict", map[string]any{"verdict": "accept"})
}

func (c *crew) work(task string, q asked) string {
	last := q.Messages[len(q.Messages)-1].Content
	_, earlier, unfit := strings.Cut(last, "he tree has changed since")
	_, tree, dropped := strings.Cut(last, "your version is in git, as ")
	if unfit || dropped {
		for _, tok := range append(token.FindAllString(earlier, -1), c.binary[task]...) {
			c.shown[tok] = true
		}
	}
	if c.hopeless[task] && len(q.Messages) > 3 || !c.calm.Load() && c.fate.IntN(40) == 0 {
		return said("I cannot do that.")
	}
	tok := fmt.Sprintf("tok-%s-%x", task[2:], c.fate.Uint64())
	kind := c.kinds[task][c.fate.IntN(len(c.kinds[task]))]
	command := fmt.Sprintf(kinds[kind], task, tok) + "; echo wrote:" + tok
	if len(q.Messages) > 2 {
		command = "rm -f bad; " + command
	}
	if kind == "binary" {
		c.binary[task] = append(c.binary[task], tok)
	}
	if dropped {
		had := "git show " + strings.TrimSuffix(strings.Fields(tree)[0], ":<file>.") + ":binary"
		command = had + " | grep -a tok- | while read -r l; do grep -qaF $l binary || echo $l >> binary; done; " +
			command
	}
	if strings.Contains(last, "conflicts with theirs") || strings.Contains(last, "are still in") {
		if c.calm.Load() || c.fate.IntN(3) > 0 {
			command = `git grep -lE '^(<<<<<<<|>>>>>>>) ' | while read -r f; do ` +
				`sed -i -E '/^(<<<<<<< .*|=======|>>>>>>> .*)$/d' "$f"; done; find . -name '*~[0-9a-f]*' | ` +
				`while read -r f; do to=${f%~*}; test -d $to && to=$to/put; cat $f >> $to; rm $f; done; ` + command
		}
	}
	if c.hopeless[task] || len(q.Messages) < 8 && c.fate.IntN(2) == 0 {
		return c.call("bash", map[string]any{"command": command})
	}
	return c.call("bash", map[string]any{"command": command}, "submit_case",
		map[string]any{"summary": "did " + task})
}

// call is an answer that calls tools: names and arguments in turn.
func (c *crew) call(tools ...any) string {
	var calls []any
	for i := 0; i < len(tools); i += 2 {
		args, err := json.Marshal(tools[i+1])
		if err != nil {
			c.t.Error(err)
		}
		calls = append(calls, map[string]any{"id": fmt.Sprintf("call_%d_%d", c.calls, i), "type": "function",
			"function": map[string]any{"name": tools[i], "arguments": string(args)}})
	}
	return completion(map[string]any{"role": "assistant", "content": nil, "tool_calls": calls}, "tool_calls")
}

// said returns an answer with only text.
func said(text string) string {
	return completion(map[string]any{"role": "assistant", "content": text}, "stop")
}

func completion(message map[string]any, finish string) string {
	data, _ := json.Marshal(map[string]any{"id": "1", "object": "chat.completion", "model": "scripted",
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}},
		"usage":   map[string]any{"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}})
	return string(data)
}
