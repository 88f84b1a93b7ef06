package session

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// Tasks are the entries of prd.json with the statuses that they have by the record. What a person has set to failed or
// pending by hand, while nothing ran, counts; done and skipped in the file prove nothing. A session of Python Tilth is
// read as it is. Errors name the file and what is wrong in it.
func (s *Session) Tasks() ([]Task, error) {
	tasks, err := s.StoredTasks()
	if err != nil {
		return nil, err
	}
	tasks, _ = s.settled(tasks)
	return tasks, nil
}

// ByHand are the tasks whose status in prd.json is another than by the record, and counts: a person has set it, or
// another tool. They are to be put on record.
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
	written, foreign := s.written()
	for i := range tasks {
		t := &tasks[i]
		recorded, was := state.StatusOf(t.ID), TaskPending
		if before, known := written[t.ID]; known {
			was = before
		}
		edited := written != nil && t.Status != was && (t.Status == TaskFailed || t.Status == TaskPending)
		switch {
		case t.Status == recorded:
		case foreign || edited:
			byHand[t.ID] = t.Status
		default:
			t.Status = recorded
		}
	}
	return tasks, byHand
}

// written are the statuses with which this program wrote prd.json last, nil where that is not known. The session is
// foreign where another tool's has not been taken over yet.
func (s *Session) written() (statuses map[string]string, foreign bool) {
	data, err := jsonl.ReadFile(s.Path(CheckpointFile))
	if err != nil {
		return nil, true
	}
	members := gjson.GetMany(jsonl.Text(data), "git_common_dir", "taken_over", "statuses")
	if members[0].String() == "" && !members[1].Bool() {
		if c, err := s.Checkpoint(); err != nil || c.GitCommonDir == "" {
			return nil, true
		}
	}
	_ = json.Unmarshal([]byte(members[2].Raw), &statuses) // what cannot be read is not known
	return statuses, false
}
