package gitx

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestAhead: what is asked ahead runs while its caller goes on, and alone: the next command begins when it has ended.
func TestAhead(t *testing.T) {
	dir := t.TempDir()
	helper := filepath.Join(dir, "git")
	script := `#!/bin/sh
echo "begin $1" >>log
if [ "$1" = ahead ]; then read -r x <go; fi
echo "end $1" >>log
echo "$1"
`
	must(t, os.WriteFile(helper, []byte(script), 0o755))
	g := New(append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH")), false, nil)
	must(t, syscall.Mkfifo(filepath.Join(dir, "go"), 0o600))
	answer := g.Ahead(t.Context(), Command{Dir: dir, Args: []string{"ahead"}})
	besides := 0
	g.Beside(func() { besides++ })
	next := make(chan string)
	go func() {
		out, _ := g.Line(t.Context(), Command{Dir: dir, Args: []string{"next"}})
		next <- out
	}()
	must(t, os.WriteFile(filepath.Join(dir, "go"), []byte("x\n"), 0o600)) // waits for who reads it
	equal(t, "the next answer", <-next, "next")
	out, err := answer()
	must(t, err)
	equal(t, "the answer", string(out), "ahead\n")
	log, _ := os.ReadFile(filepath.Join(dir, "log"))
	equal(t, "in turn", string(log), "begin ahead\nend ahead\nbegin next\nend next\n")
	equal(t, "what is done beside the next command", besides, 1)
}
