package session

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

// SeedMeta reads seed-meta.json. Members of another shape than theirs are empty.
func (s *Session) SeedMeta() (*SeedMeta, error) {
	return readJSON(s.Path(SeedMetaFile), func(data []byte) (*SeedMeta, error) {
		m := &SeedMeta{}
		if err := checkObject(data); err != nil {
			return nil, err
		}
		_ = decode(data, m, new(extra))
		return m, nil
	})
}

// SaveSeedMeta writes seed-meta.json.
func (s *Session) SaveSeedMeta(m *SeedMeta) error {
	data, err := indent(encode(m, nil))
	return save(s.Path(SeedMetaFile), data, err, true)
}
