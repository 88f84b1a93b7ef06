package scripttest

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/verify"
)

// tampering maps a script that changes a session without git-tilth to the difference that verify must find at its end,
// "" if the session was repaired. In sessions of all other scripts verify finds nothing.
var tampering = map[string]string{
	"log_filter":    "prd.json: .*no such file",
	"show_reasons":  "it has the session's trailers, but is not in the record", // the user rebased it
	"skipped_lines": "events.jsonl:1, .* the record was changed from this line on",
	"take_odd":      "the commit of T-002 is not on the branch", // the user amended it
}

func scriptOf(workDir string) string { return strings.TrimPrefix(filepath.Base(workDir), "script-") }

// differences returns verify's findings in a session. It returns none if the session is running or verify refuses it.
func differences(environ []string, s *session.Session) (found []string) {
	if _, busy := s.Holder(); busy {
		return nil
	}
	r, err := verify.Session(context.Background(), gitx.New(environ, false, nil), s)
	var refused *held.RefusedError
	if errors.As(err, &refused) {
		return nil
	}
	if err != nil {
		return []string{err.Error()}
	}
	for _, d := range r.Differences {
		found = append(found, d.String())
	}
	return found
}

// verifyAll verifies all sessions of a script. Only differences named by tampering are allowed.
func verifyAll(env *testscript.Env) {
	root := env.Getenv("TILTH_SESSIONS_DIR")
	ids, _ := session.Store{Root: root}.IDs()
	var found []string
	for _, id := range ids {
		found = append(found, differences(env.Vars, &session.Session{ID: id, Dir: filepath.Join(root, id)})...)
	}
	all := strings.Join(found, "\n")
	want, ok := tampering[scriptOf(env.WorkDir)]
	if ok && !regexp.MustCompile(want).MatchString(all) || !ok && all != "" {
		env.T().Fatal("verify has to find '", want, "' and finds:\n"+all)
	}
}

// contractVerified returns the differences in a session of a script that calls contract.
func contractVerified(ts *testscript.TestScript, s *session.Session) []string {
	if _, ok := tampering[scriptOf(ts.Getenv("WORK"))]; ok {
		return nil
	}
	var environ []string
	for _, name := range []string{"PATH", "HOME", "GIT_CONFIG_NOSYSTEM"} {
		environ = append(environ, name+"="+ts.Getenv(name))
	}
	return differences(environ, s)
}
