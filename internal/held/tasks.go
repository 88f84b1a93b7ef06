package held

import "github.com/git-tilth/git-tilth/internal/session"

// SaveTasks replaces prd.json and notes the statuses in the checkpoint, which is saved after it. A process that dies
// between the two leaves a file that says what the record says.
func (h *Handle) SaveTasks(tasks []session.Task) error {
	if err := h.S.SaveTasks(tasks); err != nil {
		return err
	}
	h.NoteStatuses(tasks)
	return nil
}

// NoteStatuses notes in the checkpoint what the tasks' statuses are.
func (h *Handle) NoteStatuses(tasks []session.Task) {
	h.Checkpoint.Statuses = map[string]string{}
	for _, t := range tasks {
		h.Checkpoint.Statuses[t.ID] = t.Status
	}
}

// SettleTotals makes the checkpoint's totals those of the record: a run that died did not come to write its checkpoint.
// What another tool has counted, and its record does not say, stays.
func (h *Handle) SettleTotals() error {
	sum, err := h.S.Summarize()
	if err != nil {
		return err
	}
	c, total := h.Checkpoint, sum.Tokens.Total
	same := total == c.TokensUsed && sum.Cost == c.Usage.Sum().Cost
	if foreign := c.GitCommonDir == ""; same || foreign && total <= c.TokensUsed {
		return nil
	}
	c.TokensUsed, c.Usage = total, sum.Usage
	return nil
}
