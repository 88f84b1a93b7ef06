package session

import (
	"os"
	"path/filepath"
)

// Names of what lies in a session's directory.
const (
	WorkspaceDir      = "workspace"
	UndoDir           = "undo"            // what each undo needs, by its number
	GoBackFile        = "going-back.json" // there while a rewind or an undo is carried out
	JudgeDir          = "judge"           // the tree under judgement, laid out
	ConversationDir   = "conversation"
	AsideDir          = "aside"  // partial work of tasks that failed, in git bundles, and records that a worker changed
	TravelDir         = "travel" // what moves it between machines: a scratch repository, the remote, the claim's holder
	LedgerDir         = "ledger"
	CheckpointFile    = "checkpoint.json"
	RecordFile        = "events.jsonl"
	TasksFile         = "prd.json"
	SeedMetaFile      = "seed-meta.json"
	InterviewFile     = "interview.jsonl"
	ProgressFile      = "progress.txt"
	LearningsFile     = "proposed-learnings.md"
	TakenFile         = "taken.jsonl" // what was taken into which branch
	TakingFile        = "taking.json" // there while the checkout of a branch is brought to what is taken
	SummaryFile       = "summary.json"
	ChatHTMLFile      = "chat.html"
	AgentDir          = "agent" // what an agent program needs for itself while it judges; a kill leaves it behind
	LockFile          = "lock"
	ResetMarkFile     = "reset"  // there from the first step of a teardown to its last
	RemakeMarkFile    = "remake" // there while the worktree is made again: what stands in its place is not whole
	branchPrefix      = "session/"
	dirMode, fileMode = 0o700, 0o600
)

// Session is one session's directory. The value holds no open file and no state: whoever has it may ask the disk.
type Session struct{ ID, Dir string }

// Path is a path in the session's directory.
func (s *Session) Path(elem ...string) string {
	return filepath.Join(append([]string{s.Dir}, elem...)...)
}

// Workspace is where the worktree of a session of this program lies. A checkpoint's own field outranks it.
func (s *Session) Workspace() string { return s.Path(WorkspaceDir) }

// Branch is the session's branch, without refs/heads/.
func (s *Session) Branch() string { return branchPrefix + s.ID }

// IsCopyOf reports whether dir is another directory than this session's that holds a session with its id.
func (s *Session) IsCopyOf(dir string) bool {
	if filepath.Base(dir) != s.ID {
		return false
	}
	there, err := os.Stat(dir)
	if err != nil || !there.IsDir() {
		return false
	}
	if own, err := os.Stat(s.Dir); err != nil || os.SameFile(own, there) {
		return false
	}
	for _, name := range []string{CheckpointFile, RecordFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}
