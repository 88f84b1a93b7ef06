package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// past is the content of a conversation.
type past struct {
	prompts []string
	tokens  [2]int64
}

// store keeps the conversations of one program in files of lines, with the names and fields of the real program. The
// member fake of each line is for the fake itself.
type store struct {
	find func(id string) string // a glob pattern
	path func(p *player) string // path of a new conversation
	head func(p *player) obj    // its first line
	line func(p *player) obj    // one message
	more func(p *player) []obj  // lines after the first, before any message
	sums func(p *player) obj    // record of an answer's tokens; nil: none
}

var errNotFound = errors.New("not found")

func home() string {
	h, _ := os.UserHomeDir()
	return h
}

func envOr(name, path string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return path
}

var notAlnum = regexp.MustCompile(`[^A-Za-z0-9]`)

func storeOf(kind string) store {
	switch kind {
	case "claude":
		root := filepath.Join(envOr("CLAUDE_CONFIG_DIR", filepath.Join(home(), ".claude")), "projects")
		return store{
			find: func(id string) string { return filepath.Join(root, "*", id+".jsonl") },
			path: func(p *player) string {
				return filepath.Join(root, notAlnum.ReplaceAllString(p.dir, "-"), p.id+".jsonl")
			},
			head: func(p *player) obj { return obj{"type": "queue-operation", "timestamp": now(), "sessionId": p.id} },
			line: func(p *player) obj {
				return obj{"type": "user", "sessionId": p.id, "cwd": p.dir, "timestamp": now(),
					"message": obj{"role": "user", "content": p.prompt}}
			},
		}
	case "codex":
		root := filepath.Join(envOr("CODEX_HOME", filepath.Join(home(), ".codex")), "sessions")
		return store{
			// A star before the id would make a glob try each place of each name.
			find: func(id string) string {
				return filepath.Join(root, "*", "*", "*", "rollout-????-??-??T??-??-??-"+id+".jsonl")
			},
			path: func(p *player) string {
				t := time.Now().UTC()
				return filepath.Join(root, t.Format("2006/01/02"), "rollout-"+t.Format("2006-01-02T15-04-05")+"-"+p.id+
					".jsonl")
			},
			head: func(p *player) obj {
				return obj{"type": "session_meta", "timestamp": now(),
					"payload": obj{"id": p.id, "cwd": p.dir, "timestamp": now()}}
			},
			line: func(p *player) obj {
				return obj{"type": "response_item", "timestamp": now(),
					"payload": obj{"type": "message", "role": "user", "content": p.prompt}}
			},
			more: func(p *player) []obj {
				text := "<environment_context>\n  <cwd>" + p.dir + "</cwd>\n</environment_context>"
				return []obj{{"type": "response_item",
					"payload": obj{"type": "message", "role": "developer", "content": "skills"}},
					{"type": "response_item", "payload": obj{"type": "message", "role": "user",
						"content": []obj{{"type": "input_text", "text": text}}}}}
			},
			sums: func(p *player) obj {
				total := obj{"input_tokens": p.tokens[0], "cached_input_tokens": 0, "output_tokens": p.tokens[1]}
				return obj{"type": "token_usage_record", "timestamp": now(),
					"payload": obj{"thread_token_usage": total}}
			},
		}
	}
	return store{}
}

func (s store) has(id string) bool {
	found, _ := filepath.Glob(s.find(id))
	return len(found) > 0
}

// fakeLine is the fake's own data in each line.
type fakeLine struct {
	Fake *struct {
		Prompt string   `json:"prompt"`
		Tokens [2]int64 `json:"tokens"`
	} `json:"fake"`
}

func (s store) load(id string) (past, error) {
	found, _ := filepath.Glob(s.find(id))
	if len(found) == 0 {
		return past{}, errNotFound
	}
	f, err := os.Open(found[0])
	if err != nil {
		return past{}, err
	}
	defer f.Close()
	var out past
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var l fakeLine
		if json.Unmarshal(lines.Bytes(), &l) != nil || l.Fake == nil {
			continue
		}
		if p := l.Fake.Prompt; p != "" && (len(out.prompts) == 0 || out.prompts[len(out.prompts)-1] != p) {
			out.prompts = append(out.prompts, p)
		}
		out.tokens[0] += l.Fake.Tokens[0]
		out.tokens[1] += l.Fake.Tokens[1]
	}
	if len(out.prompts) == 0 {
		return past{}, errNotFound
	}
	return out, lines.Err()
}

// save adds a line: when the run begins, with its prompt, and for each answer, with its tokens.
func (s store) save(p *player, answered bool) error {
	path := ""
	if found, _ := filepath.Glob(s.find(p.id)); len(found) > 0 {
		path = found[0]
	}
	fresh := path == ""
	if fresh {
		path = s.path(p)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	enc := json.NewEncoder(f)
	if fresh {
		if err := enc.Encode(s.head(p)); err != nil {
			return err
		}
		if s.more != nil {
			for _, line := range s.more(p) {
				if err := enc.Encode(line); err != nil {
					return err
				}
			}
		}
		// A conversation with a new id keeps its messages.
		for _, prompt := range p.history {
			if err := enc.Encode(obj{"type": "copied", "fake": obj{"prompt": prompt}}); err != nil {
				return err
			}
		}
	}
	if !answered {
		line := s.line(p)
		line["fake"] = obj{"prompt": p.prompt}
		return enc.Encode(line)
	}
	prompt, eval := p.price()
	p.tokens[0] += prompt
	p.tokens[1] += eval
	line := obj{"type": "answer"}
	if s.sums != nil {
		line = s.sums(p)
	}
	line["fake"] = obj{"tokens": [2]int64{prompt, eval}}
	return enc.Encode(line)
}
