package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/agent"
)

// background lets Claude Code send a subagent to the background. It reports a result while the subagent works and
// another one at the end: the turn ends with the last one and includes all costs.
func background(s *scene) error {
	if s.program.Name != "claude" {
		return nil
	}
	const pauses, helps = "it works in the background", "for i in 1 2 3 4 5 6 7 8; do sleep 1; done; echo 1 > late.txt"
	calls, helper := 0, 0
	out, err := s.run("MAIN-MARKER", agent.Ref{ID: s.program.NewID()},
		func(t *agent.Turn) { t.Linger = 2 * time.Second },
		func(_ int, body string) answer {
			switch {
			case !strings.Contains(body, "MAIN-MARKER"):
				if helper++; helper == 1 {
					return answer{shell: helps}
				}
				return answer{text: "the helper is done"}
			case strings.Contains(body, "the helper is done"):
				return finished(0, body)
			}
			if calls++; calls == 1 {
				return answer{agent: "help with it"}
			}
			return answer{text: pauses}
		})
	if err := want(out, err, agent.Completed); err != nil {
		return err
	}
	_, missing := os.Stat(filepath.Join(s.dir, "late.txt"))
	prompt, eval := s.price()
	given := s.stub.answered()
	switch {
	case helper == 0:
		return errors.New("it began no subagent")
	case missing != nil:
		return fmt.Errorf("the program ended before its subagent: %w", missing)
	case !strings.Contains(out.Text, "it works\""):
		return fmt.Errorf("the last message is %q", out.Text)
	case out.Usage.Prompt != given*prompt || out.Usage.Eval != given*eval:
		return fmt.Errorf("%d answers were given, %+v was booked", given, out.Usage)
	}
	return nil
}
