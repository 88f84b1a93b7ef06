// Package session is the session on disk: its directory, its files, its record and its lock.
//
// Rules that hold for every file here:
//   - JSON files are replaced, never rewritten in place: temporary file in the same directory, fsync, rename. The
//     directory is synced at the end of a run, and earlier if a later step depends on it. Until then a power cut may
//     bring back the old content, but never half a file. Unknown members stay.
//   - JSON-lines files are only appended to, one write(2) of one whole line. A reader skips and counts lines that are
//     not JSON objects, so that no line of a damaged file can stop it.
//   - Only the holder of the lock writes. Readers need no lock and never change anything.
//   - Directories are 0700 and files 0600, because prompts and diffs are in them.
package session

import (
	"cmp"
	"encoding/json"
	"io"
	"path/filepath"
	"sync/atomic"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Names of files in a session's directory.
const (
	WorkspaceDir      = "workspace"
	GoBackFile        = "going-back.json" // exists during a rewind, an undo or a reset to the seed
	CachesDir         = "caches"          // layers over the user's caches
	JudgeDir          = "judge"           // the judged checkout
	LanesDir          = "lanes"           // worktrees of parallel tasks
	ConversationDir   = "conversation"
	TravelDir         = "travel"                   // a scratch repository and the claim, for other machines
	KeptGitDir        = "kept.git"                 // a bare repository for undos and failed tasks
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
	AgentDir          = "agent" // temporary files of a reviewing agent program; a kill leaves them behind
	LockFile          = "lock"
	ResetMarkFile     = "reset" // exists from the first step of a teardown to its last
	branchPrefix      = "session/"
	dirMode, fileMode = 0o700, 0o600
)

// Session is the directory of one session. It has no open file. It caches only the roll-up of the record, and compares
// that with the disk at each use.
type Session struct {
	ID, Dir string

	rolled rolled
	branch atomic.Pointer[string]
}

// Path returns a path in the session's directory.
func (s *Session) Path(elem ...string) string {
	return filepath.Join(append([]string{s.Dir}, elem...)...)
}

// Workspace returns the default path of the worktree. A checkpoint's own field outranks it.
func (s *Session) Workspace() string { return s.Path(WorkspaceDir) }

// Branch is the session's branch, without refs/heads/: by the checkpoint, and without one the default. A name in the
// checkpoint counts only if the record began with it, because a reset deletes the branch.
func (s *Session) Branch() string {
	if name := s.branch.Load(); name != nil {
		return *name
	}
	c, err := s.StoredCheckpoint()
	if err != nil || c.Branch == "" {
		return DefaultBranch(s.ID)
	}
	name := c.Branch
	if name != DefaultBranch(s.ID) {
		name = cmp.Or(s.beganWith(), name)
	}
	s.SetBranch(name)
	return name
}

// beganWith returns the branch in the first session_start of the record, "" for none.
func (s *Session) beganWith() (branch string) {
	_, _, _ = record.Scan(s.Path(RecordFile), 0, func(l record.Line) error {
		if e, ok := l.Event().(*record.SessionStart); ok {
			branch = e.Branch
			return io.EOF
		}
		return nil
	})
	return branch
}

// SetBranch names the branch of a session that has no checkpoint yet.
func (s *Session) SetBranch(name string) { s.branch.Store(&name) }

// DefaultBranch returns the branch of a session that tilth.branch does not name.
func DefaultBranch(id string) string { return branchPrefix + id }

// MarkVar is a variable in the environment of everything that a run starts; its value is the session's id.
const MarkVar = "TILTH_INSIDE"

// LaneVar is a variable in the environment of everything that a lane starts; its value is the lane's number.
const LaneVar = "TILTH_LANE_NUMBER"

// Mark returns MarkVar=<id>, the environment entry of everything that a run of this session starts.
func (s *Session) Mark() string { return MarkVar + "=" + s.ID }

// OpenRecord opens the session's record and creates it if it is missing. It first repairs and logs damage of a crash at
// the end of the record, the ledgers, the transcripts and the interview.
func (s *Session) OpenRecord(opts record.Options) (*record.Record, error) {
	others := []string{s.Path(InterviewFile)}
	for _, dir := range []string{LedgerDir, ConversationDir} {
		more, _ := filepath.Glob(filepath.Join(text.GlobQuote(s.Path(dir)), "*.jsonl"))
		if s.checkDir(dir) == nil {
			others = append(others, more...)
		}
	}
	return record.Open(s.Path(RecordFile), opts, others...)
}

// SeedMeta is the interview's record. An imported seed has one too, with an empty InterviewerModel.
type SeedMeta struct {
	Source           string   `json:"source,omitempty"` // source of the imported seed
	InterviewerModel string   `json:"interviewer_model"`
	StartedAt        string   `json:"started_at"`
	EndedAt          string   `json:"ended_at"`
	Tokens           int64    `json:"tokens"`
	TLDR             string   `json:"tldr"`
	OpenQuestions    []string `json:"open_questions"`
	Blockers         []string `json:"blockers"`
	ScopeNotes       []string `json:"scope_notes"`
}

// SeedMeta reads seed-meta.json. Members of another type are empty.
func (s *Session) SeedMeta() (*SeedMeta, error) {
	return readJSON(s.Path(SeedMetaFile), func(data []byte) (*SeedMeta, error) {
		m := &SeedMeta{}
		if err := decode(data, &struct{}{}); err != nil {
			return nil, err
		}
		_ = json.Unmarshal(data, m)
		return m, nil
	})
}

// SaveSeedMeta writes seed-meta.json.
func (s *Session) SaveSeedMeta(m *SeedMeta) error {
	return save(s.Path(SeedMetaFile), m)
}
