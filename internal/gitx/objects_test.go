package gitx

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLogOfAForgedCommitGraph has the graph say of a commit that its tree is another one, which a verdict may name.
func TestLogOfAForgedCommitGraph(t *testing.T) {
	w := newWorld(t, "a", "good")
	good := strings.TrimSpace(w.sh(w.repo, "rev-parse", "HEAD^{tree}"))
	write(t, w.repo, "a", "evil")
	w.sh(w.repo, "commit", "-qam", "evil")
	tip := strings.TrimSpace(w.sh(w.repo, "rev-parse", "HEAD"))
	evil := strings.TrimSpace(w.sh(w.repo, "rev-parse", "HEAD^{tree}"))
	w.sh(w.repo, "commit-graph", "write", "--reachable")
	file := filepath.Join(w.common, "objects", "info", "commit-graph")
	graph, err := os.ReadFile(file)
	must(t, err)
	was, err := hex.DecodeString(evil)
	must(t, err)
	is, err := hex.DecodeString(good)
	must(t, err)
	must(t, os.Chmod(file, 0o600))
	must(t, os.WriteFile(file, bytes.Replace(graph, was, is, 1), 0o600))
	equal(t, "the forged tree", strings.TrimSpace(w.sh(w.repo, "log", "-1", "--format=%T")), good)

	commits, err := w.git.Log(ctx, w.common, tip, "", 1)
	must(t, err)
	equal(t, "the tree", commits[0].Tree, evil)
}
