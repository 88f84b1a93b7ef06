package session

import (
	"path/filepath"
)

// Names of files in a session's directory.
const (
	WorkspaceDir      = "workspace"
	GoBackFile        = "going-back.json" // there while a rewind, an undo or a reset to the seed is carried out
	CachesDir         = "caches"          // what was written over the user's caches
	JudgeDir          = "judge"           // the tree under judgement, laid out
	LanesDir          = "lanes"           // worktrees of tasks that are worked on side by side
	ConversationDir   = "conversation"
	TravelDir         = "travel"                   // what moves it between machines: a scratch repository, the claim
	KeptGitDir        = "kept.git"                 // a bare repository: what an undo or a failed task needs
	AsideDir          = KeptGitDir + "/refs/aside" // refs by the tasks that failed
	LedgerDir         = "ledger"
	CheckpointFile    = "checkpoint.json"
	RecordFile        = "events.jsonl"
	TasksFile         = "prd.json"
	SeedMetaFile      = "seed-meta.json"
	InterviewFile     = "interview.jsonl"
	ProgressFile      = "progress.txt"
	LearningsFile     = "proposed-learnings.md"
	SummaryFile       = "summary.json"
	ChatHTMLFile      = "chat.html"
	AgentDir          = "agent" // what an agent program needs for itself while it judges; a kill leaves it behind
	LockFile          = "lock"
	ResetMarkFile     = "reset" // there from the first step of a teardown to its last
	branchPrefix      = "session/"
	dirMode, fileMode = 0o700, 0o600
)

// Session is one session's directory. It holds no open file and caches only the roll-up of the record, which it
// compares with the disk at each use.
type Session struct {
	ID, Dir string

	rolled rolled
}

// Path is a path in the session's directory.
func (s *Session) Path(elem ...string) string {
	return filepath.Join(append([]string{s.Dir}, elem...)...)
}

// file is Path of a name that is clean already: a list asks for tens of thousands.
func (s *Session) file(name string) string { return s.Dir + "/" + name }

// Workspace is where the worktree of a session of this program lies. A checkpoint's own field outranks it.
func (s *Session) Workspace() string { return s.Path(WorkspaceDir) }

// Branch is the session's branch, without refs/heads/.
func (s *Session) Branch() string { return branchPrefix + s.ID }

// MarkVar is a variable in the environment of everything that a run starts; its value is the session's id.
const MarkVar = "TILTH_INSIDE"

// LaneVar is a variable in the environment of everything that a lane starts; its value is the lane's number.
const LaneVar = "TILTH_LANE_NUMBER"

// Mark returns MarkVar=<id>, the environment entry of everything that a run of this session starts.
func (s *Session) Mark() string { return MarkVar + "=" + s.ID }
