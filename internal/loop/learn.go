package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// learn asks the worker's model once after a committed task whether it learned something durable. The answer and its
// failure have no other effect, because the commit is already on record.
func (a *attempt) learn(ctx context.Context, c *Case, files []gitx.FileChange) {
	if a.run.o.Worker.Client == nil || ctx.Err() != nil {
		return
	}
	entry, reason := a.proposal(ctx, c, files)
	if entry != "" {
		entry = a.run.Redact.String(entry)
		if err := appendLearning(a.run.S, a.run.Now(), a.task, entry); err != nil {
			entry, reason = "", err.Error()
		}
	}
	// An error here is an error of the record, which the next append reports.
	_ = a.emit(&record.ProposedLearnings{Emitted: entry != "", Entry: record.Optional(entry), Reason: reason})
}

// appendLearning adds a worker's proposed learning to proposed-learnings.md.
func appendLearning(s *session.Session, now time.Time, t session.Task, learning string) error {
	path := s.Path(session.LearningsFile)
	known, err := jsonl.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b := bytes.NewBuffer(known)
	if len(known) == 0 {
		b.WriteString("# Proposed learnings\n\nFor you to review; git-tilth does not read this file.\n")
	}
	fmt.Fprintf(b, "\n## %s: %s\n\n%s, %s\n\n%s\n", t.ID, text.VisibleLine(text.OneLine(t.Title)),
		s.ID, record.FormatTime(now), text.Visible(strings.TrimSpace(learning)))
	return jsonl.Put(path, b.Bytes(), false)
}

func (a *attempt) proposal(ctx context.Context, c *Case, files []gitx.FileChange) (entry, reason string) {
	known, _ := jsonl.ReadFile(a.run.S.Path(session.LearningsFile))
	system, err := a.run.o.Prompts.Render("learning", nil)
	if err != nil {
		return "", err.Error()
	}
	f := newFence()
	user, err := a.run.o.Prompts.Render("learning_task", map[string]any{
		"Task": a.task, "Case": f.wrap("case", clip(c.Text(), promptCap)), "Files": f.wrap("files", diffSummary(files)),
		"Learnings": f.wrap("learnings", clip(string(known), planCap)),
	})
	if err != nil {
		return "", err.Error()
	}
	if err := a.recordPrompt(record.RoleSelfImprove, system, user, nil); err != nil {
		return "", err.Error()
	}
	// One attempt: a learning is not worth a retry.
	reply, err := a.caller(record.RoleSelfImprove, a.run.o.Worker).make(ctx, model.Request{Messages: []json.RawMessage{
		agent.Message("system", system), agent.Message("user", user)}}, 1)
	if err != nil {
		return "", err.Error()
	}
	return readProposal(reply.Content)
}

// readProposal reads {"propose": "yes"|"no", "learning": ...}. Any other answer counts as no; reason says why.
func readProposal(answer string) (entry, reason string) {
	raw, ok := agent.FinalJSON(answer)
	if !ok {
		return "", "the answer has no JSON object"
	}
	var p struct {
		Propose  any    `json:"propose"`
		Learning string `json:"learning"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return "", "the answer cannot be read: " + err.Error()
	}
	yes := strings.EqualFold(fmt.Sprint(p.Propose), "yes") || p.Propose == true
	entry = strings.TrimSpace(p.Learning)
	switch {
	case !yes:
		return "", "nothing to propose"
	case entry == "":
		return "", "the answer is yes, but has no learning"
	}
	return entry, "proposed"
}
