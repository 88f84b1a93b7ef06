package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// sideBySide runs two tasks at the same time, kills git-tilth while both run a command, and resumes it. Each continues
// in its own conversation.
func sideBySide(s *scene) error {
	ids := []string{"T-001", "T-002"}
	var tasks []obj
	for _, id := range ids {
		tasks = append(tasks, obj{"id": id, "title": "Make it", "description": "make made-" + id + ".txt",
			"acceptance_criteria": []string{"it is there"}})
	}
	tilth, root, file, err := s.ownRepo("lanes", tasks)
	if err != nil {
		return err
	}
	of := func(body string) string {
		for _, id := range ids {
			if strings.Contains(body, "Your task: "+id) {
				return id
			}
		}
		return ""
	}
	s.stub.play(func(int, string) answer { return answer{shell: "touch begun; sleep 100"} })
	run := tilth("run", "-j", "2", "--from", file)
	if err := run.Start(); err != nil {
		return err
	}
	begun := func() int {
		there, _ := filepath.Glob(filepath.Join(root, "*", "lanes", "T-*", "begun"))
		return len(there)
	}
	for end := time.Now().Add(2 * time.Minute); begun() < len(ids); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) || s.ctx.Err() != nil {
			_ = run.Process.Kill()
			return fmt.Errorf("%d of %d lanes ran their command", begun(), len(ids))
		}
	}
	_ = run.Process.Kill()
	_ = run.Wait()
	var mu sync.Mutex
	made, went := map[string]bool{}, map[string]bool{}
	s.stub.play(func(_ int, body string) answer {
		mu.Lock()
		defer mu.Unlock()
		id := of(body)
		switch {
		case strings.Contains(body, filepath.Join("lanes", ".judge")+string(os.PathSeparator)):
			return answer{text: `{"verdict": "accept"}`}
		case made[id]:
			return answer{text: `{"summary": "it is made"}`}
		}
		made[id], went[id] = true, strings.Contains(body, "You are continuing a task that you began")
		return answer{shell: "rm -f begun; echo made > made-" + id + ".txt"}
	})
	if _, err := s.said(tilth("resume", "-j", "2")); err != nil {
		return err
	}
	for _, id := range ids {
		if !went[id] {
			return fmt.Errorf("%s did not go on in its own conversation", id)
		}
	}
	_, err = s.said(tilth("verify"))
	return err
}
