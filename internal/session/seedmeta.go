package session

import "github.com/tidwall/gjson"

// SeedMeta is the interview's record. An imported seed has one too, with an empty InterviewerModel.
type SeedMeta struct {
	Source           string   `json:"source,omitempty"`    // what the seed was imported from
	Checklist        string   `json:"checklist,omitempty"` // in the repository, to be ticked as tasks are done
	InterviewerModel string   `json:"interviewer_model"`
	StartedAt        string   `json:"started_at"`
	EndedAt          string   `json:"ended_at"`
	Tokens           int64    `json:"tokens"`
	TLDR             string   `json:"tldr"`
	OpenQuestions    []string `json:"open_questions"`
	Blockers         []string `json:"blockers"`
	ScopeNotes       []string `json:"scope_notes"`
}

// SeedMeta reads seed-meta.json as far as its members go: their shapes differ between writers (a string or a list, a
// number or an object).
func (s *Session) SeedMeta() (*SeedMeta, error) {
	return readJSON(s.Path(SeedMetaFile), decodeSeedMeta)
}

func decodeSeedMeta(data []byte) (*SeedMeta, error) {
	if err := checkObject(data); err != nil {
		return nil, err
	}
	o := gjson.ParseBytes(data)
	return &SeedMeta{
		Source: looseText(o.Get("source")), Checklist: looseText(o.Get("checklist")),
		InterviewerModel: looseText(o.Get("interviewer_model")),
		StartedAt:        momentText([]byte(o.Get("started_at").Raw)),
		EndedAt:          momentText([]byte(o.Get("ended_at").Raw)),
		Tokens:           looseTokens(o.Get("tokens")), TLDR: looseText(o.Get("tldr")),
		OpenQuestions: looseList(o.Get("open_questions")), Blockers: looseList(o.Get("blockers")),
		ScopeNotes: looseList(o.Get("scope_notes")),
	}, nil
}

// SaveSeedMeta writes seed-meta.json.
func (s *Session) SaveSeedMeta(m *SeedMeta) error {
	data, err := indent(encode(m, nil))
	return save(s.Path(SeedMetaFile), data, err, true)
}

// looseText is a string, or empty.
func looseText(v gjson.Result) string {
	if v.Type != gjson.String {
		return ""
	}
	return v.Str
}

// looseTokens is a count, or the total of an object of counts.
func looseTokens(v gjson.Result) int64 {
	if total := v.Get("total"); total.Exists() {
		return total.Int()
	}
	sum := v.Int()
	for _, part := range v.Get("[prompt,eval,prompt_tokens,eval_tokens]").Array() {
		sum += part.Int()
	}
	return sum
}

// looseList is a list of strings, one string as a list of one, and other values in a list as their JSON.
func looseList(v gjson.Result) []string {
	if !v.IsArray() {
		if text := looseText(v); text != "" {
			return []string{text}
		}
		return nil
	}
	list := []string{}
	for _, item := range v.Array() {
		list = append(list, item.String())
	}
	return list
}
