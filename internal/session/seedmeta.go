package session

import (
	"encoding/json"
	"fmt"
)

// SeedMeta is the interview's record. An imported seed has one too, with an empty InterviewerModel.
type SeedMeta struct {
	InterviewerModel string   `json:"interviewer_model"`
	StartedAt        string   `json:"started_at"`
	EndedAt          string   `json:"ended_at"`
	Tokens           int64    `json:"tokens"`
	TLDR             string   `json:"tldr"`
	OpenQuestions    []string `json:"open_questions"`
	Blockers         []string `json:"blockers"`
	ScopeNotes       []string `json:"scope_notes"`

	extra *Object
}

// UnmarshalJSON reads the members as far as they go: their shapes differ between writers (a string or a list, a number or
// an object). The text of each stays until its field is changed.
func (m *SeedMeta) UnmarshalJSON(data []byte) error {
	o, err := ParseObject(data)
	if err != nil {
		return err
	}
	*m = SeedMeta{extra: o}
	m.InterviewerModel = looseText(o, "interviewer_model")
	if raw, ok := o.Get("started_at"); ok {
		m.StartedAt = momentText(raw)
	}
	if raw, ok := o.Get("ended_at"); ok {
		m.EndedAt = momentText(raw)
	}
	m.TLDR = looseText(o, "tldr")
	m.Tokens = looseTokens(o, "tokens")
	m.OpenQuestions = looseList(o, "open_questions")
	m.Blockers = looseList(o, "blockers")
	m.ScopeNotes = looseList(o, "scope_notes")
	return nil
}

// MarshalJSON writes the fields that differ from what was read over it.
func (m *SeedMeta) MarshalJSON() ([]byte, error) {
	was := &SeedMeta{}
	if m.extra != nil {
		raw, err := m.extra.MarshalJSON()
		if err != nil {
			return nil, err
		}
		if err := was.UnmarshalJSON(raw); err != nil {
			return nil, err
		}
	}
	now, before := &Object{}, &Object{}
	if err := now.overlay(m); err != nil {
		return nil, err
	}
	if err := before.overlay(was); err != nil {
		return nil, err
	}
	out := m.extra.clone()
	for _, k := range now.Keys() {
		raw, _ := now.Get(k)
		old, _ := before.Get(k)
		if _, had := out.Get(k); !had || !sameJSON(raw, old) {
			out.SetRaw(k, raw)
		}
	}
	return out.MarshalJSON()
}

// SeedMeta reads seed-meta.json.
func (s *Session) SeedMeta() (*SeedMeta, error) {
	path := s.Path(SeedMetaFile)
	data, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	m := &SeedMeta{}
	if err := m.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// SaveSeedMeta replaces seed-meta.json.
func (s *Session) SaveSeedMeta(m *SeedMeta) error {
	data, err := indentJSON(m)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Path(SeedMetaFile), err)
	}
	return WriteFileAtomic(s.Path(SeedMetaFile), data)
}

// looseText is a string member, or the empty string.
func looseText(o *Object, key string) string {
	var text string
	if raw, ok := o.Get(key); ok {
		_ = json.Unmarshal(raw, &text)
	}
	return text
}

// looseTokens reads a count, or the total of an object of counts.
func looseTokens(o *Object, key string) int64 {
	raw, ok := o.Get(key)
	if !ok {
		return 0
	}
	if n, whole := wholeNumber(raw); whole {
		return n
	}
	parts, err := ParseObject(raw)
	if err != nil {
		return 0
	}
	if raw, ok := parts.Get("total"); ok {
		n, _ := wholeNumber(raw)
		return n
	}
	var sum int64
	for _, k := range []string{"prompt", "eval", "prompt_tokens", "eval_tokens"} {
		if raw, ok := parts.Get(k); ok {
			n, _ := wholeNumber(raw)
			sum += n
		}
	}
	return sum
}

// looseList reads a list of strings, one string as a list of one, and other values in a list as their JSON.
func looseList(o *Object, key string) []string {
	raw, ok := o.Get(key)
	if !ok {
		return nil
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		if one == "" {
			return nil
		}
		return []string{one}
	}
	var many []json.RawMessage
	if json.Unmarshal(raw, &many) != nil {
		return nil
	}
	list := make([]string, 0, len(many))
	for _, item := range many {
		text := string(item)
		_ = json.Unmarshal(item, &text)
		list = append(list, text)
	}
	return list
}
