package scripttest

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/replay"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/verify"
)

// tampering are the scripts that leave sessions in which something was changed behind the harness's back, and what
// verify has to find in the end, "" where that is mended again. In those of all others it finds nothing.
var tampering = map[string]string{
	"hostile_objects":  "",
	"hostile_statuses": "prd.json: T-001 is done, and by the record it is failed",
	"log_filter":       "prd.json: .*no such file",
	"show_reasons":     "it has the session's trailers and is not on record", // a person's rebase
	"skipped_lines":    "events.jsonl:1, .* the record is not what it was",
	"take_odd":         "the commit of T-002 is not on the branch", // a person's amended one is
}

func scriptOf(workDir string) string { return strings.TrimPrefix(filepath.Base(workDir), "script-") }

// differences are what verify finds in a session at rest: nothing in one that is running, or that it refuses.
func differences(environ []string, s *session.Session) (found []string) {
	if _, busy := s.Holder(); busy {
		return nil
	}
	r, err := verify.Session(context.Background(), gitx.New(environ, false, nil), s)
	var refused *lifecycle.RefusedError
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

// diverging are the scripts whose sessions do not come to the same trees when they are replayed, and where.
var diverging = map[string]string{
	// the time of day
	"keep_going": "differs in 1 file, first in f1; call 1 of T-001 \\(bash\\) wrote it last",
	"marks":      "the commit of T-001 differs in 1 file, first in junk",
	"replay":     "first in stamp; call 2 of T-001 \\(bash\\) wrote it last",
	// what the setup had installed
	"preflight_projects": "first in tools/vitest/vitest.js",
	"secrets":            "first in check.sh", // the conversation has no key
}

// replayed is where a session at rest diverges when it is replayed, "" for nowhere and for one that cannot be.
func replayed(environ []string, s *session.Session) string {
	if _, busy := s.Holder(); busy {
		return ""
	}
	o := replay.Options{Git: gitx.New(environ, false, nil)}
	if proc.Getenv(environ, "TILTH_SANDBOX") != "off" && sandbox.Probe().Err == nil {
		// What a worker did in the sandbox is not done again outside of it.
		getenv := func(name string) string { return proc.Getenv(environ, name) }
		o.Sandbox = sandbox.Default(getenv, func(string) bool { return false }, filepath.Dir(s.Dir))
	}
	terminals.Lock()
	defer terminals.Unlock()
	r, err := replay.Run(context.Background(), o, s)
	var refused *lifecycle.RefusedError
	if errors.As(err, &refused) {
		return ""
	}
	if err != nil {
		return err.Error()
	}
	return r.Divergence
}

// verifyAll verifies and replays what a script leaves behind.
func verifyAll(env *testscript.Env) {
	root := env.Getenv("TILTH_SESSIONS_DIR")
	ids, _ := session.Store{Root: root}.IDs()
	var found, diverged []string
	for _, id := range ids {
		s := &session.Session{ID: id, Dir: filepath.Join(root, id)}
		found = append(found, differences(env.Vars, s)...)
		if at := replayed(env.Vars, s); at != "" {
			diverged = append(diverged, at)
		}
	}
	expect(env, "verify", tampering, found)
	expect(env, "replay", diverging, diverged)
}

// expect compares what was found in the sessions of a script with what there is to find, which is nothing in most.
func expect(env *testscript.Env, command string, known map[string]string, found []string) {
	all := strings.Join(found, "\n")
	want, ok := known[scriptOf(env.WorkDir)]
	if ok && !regexp.MustCompile(want).MatchString(all) || !ok && all != "" {
		env.T().Fatal(command, " has to find '", want, "' and finds:\n"+all)
	}
}

// contractVerified are the differences in a session of a script that calls contract.
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
