package session

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// Tasks returns the entries of prd.json with their statuses by the record. A status that the user set to failed or
// pending while nothing ran counts; done and skipped in the file do not. Errors name the file and the fault in it.
func (s *Session) Tasks() ([]Task, error) {
	tasks, err := s.StoredTasks()
	if err != nil {
		return nil, err
	}
	tasks, _ = s.settled(tasks)
	return tasks, nil
}

// ByHand returns the statuses that the user set in prd.json, by task. They differ from the record and have to be
// recorded.
func (s *Session) ByHand() (map[string]string, error) {
	tasks, err := s.StoredTasks()
	if err != nil {
		return nil, err
	}
	_, byHand := s.settled(tasks)
	return byHand, nil
}

// settled gives tasks, as prd.json has them, the statuses that count.
func (s *Session) settled(tasks []Task) (settled []Task, byHand map[string]string) {
	byHand = map[string]string{}
	state, err := s.State()
	if err != nil {
		return tasks, byHand // who needs the record says what is the matter with it
	}
	written := s.written()
	for i := range tasks {
		t := &tasks[i]
		recorded, was := state.StatusOf(t.ID), TaskPending
		if before, known := written[t.ID]; known {
			was = before
		}
		edited := written != nil && t.Status != was && (t.Status == TaskFailed || t.Status == TaskPending)
		switch {
		case t.Status == recorded:
		case edited:
			byHand[t.ID] = t.Status
		default:
			t.Status = recorded
		}
	}
	return tasks, byHand
}

// written are the statuses with which this program wrote prd.json last, nil where that is not known.
func (s *Session) written() (statuses map[string]string) {
	data, _ := jsonl.ReadFile(s.Path(CheckpointFile))
	_ = json.Unmarshal([]byte(gjson.Get(jsonl.Text(data), "statuses").Raw), &statuses)
	return statuses
}
