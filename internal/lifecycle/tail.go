package lifecycle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/git-tilth/git-tilth/internal/session"
)

// SeedOf finds the seed's commit: the last seed_committed before anything ran. It returns the sha and branch as
// recorded and the offset at which the line ends, before its newline.
func SeedOf(s *session.Session) (sha, branch string, end int64, err error) {
	done := errors.New("enough")
	_, _, err = s.ScanRecord(0, func(off int64, line []byte) error {
		var e struct {
			Type    string `json:"type"`
			Payload struct {
				SHA    string `json:"sha"`
				Branch string `json:"branch"`
				Phase  string `json:"phase"`
			} `json:"payload"`
		}
		if !mentions(line, "seed_committed", "session_start", "session_resume", "context_reset") || json.Unmarshal(line, &e) != nil {
			return nil
		}
		switch e.Type {
		case "seed_committed":
			if e.Payload.SHA != "" {
				sha, branch, end = e.Payload.SHA, e.Payload.Branch, off+int64(len(line))
			}
		case "session_start":
			if e.Payload.Phase == "run" {
				return done
			}
		case "session_resume", "context_reset":
			return done
		}
		return nil
	})
	if err != nil && !errors.Is(err, done) {
		return "", "", 0, err
	}
	if sha == "" {
		return "", "", 0, fmt.Errorf("no seed_committed event in the record")
	}
	return sha, branch, end, nil
}

// tail is what the end of the record says.
type tail struct {
	lastStop string
	lastTask string // the task of the last event that has one
	accepted *Accepted
}

// readTail reads the record backwards until it knows how the last run ended. A stop counts only if
// nothing was begun after it: one that is older than a crash says nothing about the crash.
func readTail(s *session.Session) (tail, error) {
	var t tail
	begun, taskID := false, ""
	_, err := s.TailRecord(func(_ int64, line []byte) (more bool) {
		var e struct {
			Type    string `json:"type"`
			Payload struct {
				Reason  string `json:"reason"`
				TaskID  string `json:"task_id"`
				Verdict string `json:"verdict"`
				Tree    string `json:"tree"`
				Base    string `json:"base"`
				Phase   string `json:"phase"`
				Summary string `json:"summary"`

				LastStop string   `json:"last_stop"`
				Pending  []string `json:"pending"`
				Retried  []string `json:"retried"`
			} `json:"payload"`
		}
		if json.Unmarshal(line, &e) != nil {
			return true
		}
		if t.lastTask == "" {
			t.lastTask = e.Payload.TaskID
		}
		switch e.Type {
		case "stop":
			if !begun {
				t.lastStop = e.Payload.Reason
			}
			switch e.Payload.Reason {
			case "interrupted", "error":
				// These may cut in between a verdict and its commit, of a run and of each resume that tries to make up for it.
				begun = true
			default:
				return false
			}
		case "log_repaired", "ledger_appended", "hook_run":
		case "task_done":
			taskID = e.Payload.TaskID
			begun = true
		case "session_resume":
			if e.Payload.LastStop == session.AllDone && len(e.Payload.Pending)+len(e.Payload.Retried) == 0 {
				return true // it found everything done
			}
			// A resume that died before its first task changed nothing of what came before it, so an accepted
			// tree may still be waiting beyond it; its stop is not the last word any more.
			begun = true
		case "evaluator_verdict":
			if e.Payload.Verdict == "accept" && e.Payload.Tree != "" && (taskID == "" || taskID == e.Payload.TaskID) {
				t.accepted = &Accepted{
					Task: e.Payload.TaskID, Tree: e.Payload.Tree, Base: e.Payload.Base, Summary: e.Payload.Summary, Noted: taskID != "",
				}
			}
			return false
		case "model_call":
			if e.Payload.Phase != "self_improve" {
				return false
			}
			begun = true
		default:
			return false
		}
		return true
	})
	return t, err
}

// mentions is a cheap test that spares most lines of an interview their decoding. Every writer puts a line's
// type before its payload or keeps the whole line short.
func mentions(line []byte, words ...string) bool {
	part := line
	if len(part) > 4096 {
		part = part[:512]
	}
	for _, w := range words {
		if bytes.Contains(part, []byte(w)) {
			return true
		}
	}
	return false
}
