package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
)

// listedFile is the cache of list, in the sessions root: a line per session with its id, the stamp of its files and its
// listed. It makes a list of thousands of sessions take a tenth of the time, and it can be deleted at any time.
const listedFile = ".list"

// fewListed is the number of sessions that are read without the cache, because that is fast.
const fewListed = 200

// settles is the time after which a change gives a file another stamp, on the coarsest of file systems.
var settles = 2 * time.Second

// listed is an Overview with the members that its JSON lacks.
type listed struct {
	Overview
	Common string        `json:"common,omitempty"`
	Linked string        `json:"linked,omitempty"` // commonFromLink
	State  *record.State `json:"of_record,omitempty"`
}

// listedLines returns the lines of the cache by session. A line is a stamp, a space and the JSON of a listed.
func (st Store) listedLines() map[string]string {
	data, err := jsonl.ReadFile(st.session(listedFile).Dir)
	if err != nil {
		return nil
	}
	lines := map[string]string{}
	for line := range strings.Lines(string(data)) {
		id, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		lines[id] = rest
	}
	return lines
}

// saveListed replaces the cache by the given lines. Errors do not matter: without the cache the next list only takes
// longer.
func (st Store) saveListed(ids []string, lines []string) {
	var text bytes.Buffer
	for i, id := range ids {
		if lines[i] != "" {
			fmt.Fprintf(&text, "%s %s\n", id, lines[i])
		}
	}
	_ = jsonl.Put(st.session(listedFile).Dir, text.Bytes(), false)
}

// stamp returns a text that changes with the session's files, and whether they have settled. It has the change times of
// inodes, which no program can set back. That of the directory stands for the files that are replaced as a whole.
func (s *Session) stamp(now time.Time) (stamp string, settled bool) {
	settled = true
	var text strings.Builder
	for _, path := range []string{s.Dir, s.Path(CheckpointFile), s.Path(TasksFile), s.Path(RecordFile),
		s.Path(WorkspaceDir, ".git")} {
		var st unix.Stat_t
		if unix.Lstat(path, &st) == nil {
			sec, nsec := st.Ctim.Unix()
			settled = settled && now.Sub(time.Unix(sec, nsec)) > settles
			fmt.Fprintf(&text, "%x.%x.%x.%x", st.Ino, st.Size, sec, nsec)
		}
		text.WriteByte('/')
	}
	return text.String(), settled
}

// fromListed is readOnce for a session whose line in the cache is given. done is false if its files have to be read.
func (o *Overview) fromListed(s *Session, line string, wanted wantedFunc) (is, done bool) {
	stamp, text, _ := strings.Cut(line, " ")
	if now, _ := s.stamp(time.Now()); now != stamp {
		return false, false
	}
	var l listed
	if json.Unmarshal([]byte(text), &l) != nil || l.ID != s.ID {
		return false, false
	}
	if wanted != nil && !wanted(s, l.Source, l.Common, l.Linked) {
		return false, true
	}
	*o = l.Overview
	o.Dir, o.GitCommonDir, o.HasWorktree = s.Dir, l.Common, l.Linked != "" || isThere(o.Workspace)
	if l.State != nil {
		o.Summary = &Summary{State: l.State}
	}
	if o.Status == Running {
		o.Busy, _ = s.Holder()
	}
	return true, o.Busy == nil
}

// listedLine returns the session's line for the cache, or "" if the next list has to read its files.
func (o *Overview) listedLine(s *Session, stamp string) string {
	if o.Busy != nil || o.Resetting || o.Rewinding || o.GoingBack || len(o.Problems) > 0 || o.Summary == nil {
		return ""
	}
	l := listed{Overview: *o, Common: o.GitCommonDir, Linked: s.commonFromLink()}
	if stop := o.Summary.State.Stopped; stop != nil && !record.ReasonOf(stop.Reason).Calm {
		l.State = o.Summary.State
	}
	text, err := json.Marshal(l)
	if err != nil {
		return ""
	}
	return stamp + " " + string(text)
}
