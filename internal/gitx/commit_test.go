package gitx

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestCommitUserSettings(t *testing.T) {
	tests := map[string]string{
		"commit.gpgSign":      "true",
		"gpg.program":         "pinentry-that-waits",
		"commit.template":     "template.txt",
		"commit.verbose":      "true",
		"commit.cleanup":      "scissors",
		"commit.status":       "false",
		"core.editor":         "sleep 1000",
		"core.fsmonitor":      "/bin/false",
		"i18n.commitEncoding": "ISO-8859-1",
		"core.commentChar":    "T",
		"color.ui":            "always",
		"trailer.separators":  "%",
	}
	w := newWorld(t)
	write(t, w.home, "template.txt", "# from the template\n", "pinentry-that-waits", "#!/bin/sh\nsleep 1000\n")
	for key, value := range tests {
		if key == "gpg.program" || key == "commit.template" {
			value = filepath.Join(w.home, value)
		}
		w.sh(w.home, "config", "--global", key, value)
	}
	w.restart()
	write(t, w.path, "b.txt", "b\n")
	w.stage()
	msg := "T-001: grüße\n\n# not a comment\nTask text.\n\nTilth-Session: s\nTilth-Task: T-001\n"
	sha, _, err := w.commit(ctx, w.wt(), msg, false)
	must(t, err)
	raw := w.sh(w.repo, "cat-file", "commit", sha)
	if strings.Contains(raw, "gpgsig") || strings.Contains(raw, "\nencoding ") ||
		!strings.HasSuffix(raw+"\n", "\n\n"+msg) {
		t.Errorf("commit: %q", raw)
	}
	log, err := w.git.Log(ctx, w.common, branch, w.base, 0)
	must(t, err)
	if len(log) != 1 || log[0].SHA != sha || log[0].Subject != "T-001: grüße" ||
		!strings.Contains(raw, "\nauthor Some One <") ||
		strings.Join(log[0].Trailers["Tilth-Task"], "") != "T-001" || strings.Join(log[0].Parents, "") != w.base {
		t.Errorf("log: %+v", log)
	}
	if !strings.Contains(log[0].Body, "# not a comment\nTask text.") {
		t.Errorf("body: %q", log[0].Body)
	}
}

func TestCommitHooks(t *testing.T) {
	tests := []struct {
		name, hook, script string
		refused            bool
		output             string
		files              []string
	}{
		{"refuses", "pre-commit", "echo no tabs here; exit 1", true, "no tabs here", nil},
		{"refuses the message", "commit-msg", "echo bad message >&2; exit 3", true, "bad message", nil},
		{"empties the message", "commit-msg", ": > \"$1\"", true, "empty commit message", nil},
		{"cannot start", "pre-commit", "\x00", true, "", nil},
		{"complains later", "post-commit", "echo late; exit 1", false, "late", []string{"a.txt", "b.txt"}},
		{"changes the tree", "pre-commit", "echo f > formatted.txt; git add formatted.txt", false, "",
			[]string{"a.txt", "b.txt", "formatted.txt"}},
		{"runs git", "pre-commit",
			"git stash list; git status --short; git diff --cached --name-only; git rev-parse --show-toplevel", false,
			"b.txt", []string{"a.txt", "b.txt"}},
		{"leaves a child", "pre-commit", "sleep 1000 &", false, "", []string{"a.txt", "b.txt"}},
		{"asks on the terminal", "pre-commit", "read x </dev/tty && exit 1; exit 0", false, "",
			[]string{"a.txt", "b.txt"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			script := "#!/bin/sh\n" + tt.script + "\n"
			if tt.script == "\x00" {
				script = "#!/nowhere/interpreter\n"
			}
			write(t, w.common, filepath.Join("hooks", tt.hook), script)
			w.restart(w.leaks()...)
			write(t, w.path, "b.txt", "b\n")
			w.stage()
			sha, said, err := w.commit(ctx, w.wt(), "T-001: x", false)
			tip := w.sh(w.repo, "rev-parse", branch)
			if tt.refused {
				if err == nil || !strings.Contains(said, tt.output) {
					t.Errorf("got %v, %q", err, said)
				}
				equal(t, "tip", tip, w.base)
				return
			}
			must(t, err)
			equal(t, "tip", tip, sha)
			equalLists(t, "files", w.files(sha), tt.files)
			equal(t, "user's HEAD", w.sh(w.repo, "rev-parse", "HEAD"), w.base)
		})
	}
}

// A hook may run a worker's program that never ends.
func TestHooksThatDoNotEnd(t *testing.T) {
	w := newWorld(t)
	write(t, w.common, "hooks/pre-commit", "#!/bin/sh\necho looking; sleep 1000\n")
	must(t, os.Chmod(filepath.Join(w.common, "hooks/pre-commit"), 0o755))
	w.git.inTree = 300 * time.Millisecond
	write(t, w.path, "b.txt", "b\n")
	w.stage()
	_, said, err := w.commit(ctx, w.wt(), "T-001: x", false)
	if err == nil || !strings.Contains(said, "looking") || !strings.Contains(said, "took longer than 300ms") {
		t.Errorf("got %v, %q", err, said)
	}
	equal(t, "tip", w.sh(w.repo, "rev-parse", branch), w.base)
}

func TestCommitHooksPath(t *testing.T) {
	w := newWorld(t)
	write(t, w.home, "hooks/pre-commit", "#!/bin/sh\necho from core.hooksPath; exit 1\n")
	w.sh(w.home, "config", "--global", "core.hooksPath", "~/hooks")
	w.restart()
	_, said, err := w.commit(ctx, w.wt(), "x", false)
	if err == nil || said != "from core.hooksPath" {
		t.Errorf("got %v, %q", err, said)
	}
	// Plumbing runs no hooks.
	write(t, w.home, "hooks/reference-transaction", "#!/bin/sh\nexit 1\n")
	_, err = w.git.CommitTree(ctx, w.wt(), TreeCommit{
		Tree:    w.base + "^{tree}",
		Parent:  w.base,
		Message: "FAILED\n",
		Reflog:  "tilth: x",
	})
	must(t, err)
	must(t, rewind(w.git, w.wt(), w.base))
}

func TestCommitEndsWithItsContext(t *testing.T) {
	w := newWorld(t)
	fifo := filepath.Join(w.home, "started")
	write(t, w.common, "hooks/pre-commit", "#!/bin/sh\ntrap '' TERM\necho started > "+fifo+
		"\nsleep 1000 &\nwait\nsleep 1000\n")
	must(t, syscall.Mkfifo(fifo, 0o600))
	c, cancel := context.WithCancel(ctx)
	go func() {
		// Opening a fifo waits for the hook to open its other end.
		if f, err := os.Open(fifo); err == nil {
			f.Close()
		}
		cancel()
	}()
	_, _, err := w.commit(c, w.wt(), "x", false)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	equal(t, "tip", w.sh(w.repo, "rev-parse", branch), w.base)
	// The next command removes the locks of a killed one.
	_, _, err = w.git.StageAll(ctx, w.wt(), w.base)
	must(t, err)
}

func TestCommitWithoutIdentity(t *testing.T) {
	w := newWorld(t)
	write(t, w.home, ".gitconfig", "")
	w.restart()
	sha, _, err := w.commit(ctx, w.wt(), "x", false)
	must(t, err)
	who := "--format=%an <%ae> %cn <%ce>"
	equal(t, "identity", w.sh(w.repo, "log", "-1", who, sha),
		"git-tilth <git-tilth@localhost> git-tilth <git-tilth@localhost>")
	next, err := w.git.CommitTree(ctx, w.wt(), TreeCommit{
		Tree:    sha + "^{tree}",
		Parent:  sha,
		Message: "x\n",
		Reflog:  "tilth: x",
	})
	must(t, err)
	equal(t, "identity", w.sh(w.repo, "log", "-1", who, next),
		"git-tilth <git-tilth@localhost> git-tilth <git-tilth@localhost>")

	w.restart("GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@x")
	sha, _, err = w.commit(ctx, w.wt(), "x", false)
	must(t, err)
	equal(t, "identity", w.sh(w.repo, "log", "-1", who, sha), "A <a@x> git-tilth <git-tilth@localhost>")

	w.sh(w.repo, "config", "user.name", "Local")
	w.sh(w.repo, "config", "user.email", "local@x")
	w.restart()
	sha, _, err = w.commit(ctx, w.wt(), "x", false)
	must(t, err)
	equal(t, "identity", w.sh(w.repo, "log", "-1", who, sha), "Local <local@x> Local <local@x>")

	w.restart("GIT_AUTHOR_NAME=", "GIT_AUTHOR_EMAIL=", "GIT_COMMITTER_NAME=C")
	sha, _, err = w.commit(ctx, w.wt(), "x", false)
	must(t, err)
	equal(t, "identity", w.sh(w.repo, "log", "-1", who, sha), "Local <local@x> C <local@x>")
}

func TestCommitSigned(t *testing.T) {
	w := newWorld(t)
	gpg := filepath.Join(w.home, "gpg")
	write(t, w.home, "gpg",
		"#!/bin/sh\ncat >/dev/null\n[ -z \"$DISPLAY$GPG_TTY\" ] || exit 1\necho '[GNUPG:] SIG_CREATED ' >&2\necho "+
			"-----BEGIN PGP SIGNATURE-----\necho -----END PGP SIGNATURE-----\n")
	w.sh(w.home, "config", "--global", "gpg.program", gpg)
	w.restart("DISPLAY=:0", "GPG_TTY=/dev/pts/0")
	sha, _, err := w.commit(ctx, w.wt(), "x", true)
	must(t, err)
	next, err := w.git.CommitTree(ctx, w.wt(), TreeCommit{
		Tree:    sha + "^{tree}",
		Parent:  sha,
		Message: "x\n",
		Reflog:  "tilth: x",
		Sign:    true,
	})
	must(t, err)
	for _, c := range []string{sha, next} {
		if !strings.Contains(w.sh(w.repo, "cat-file", "commit", c), "gpgsig") {
			t.Errorf("%s is not signed", c)
		}
	}
	write(t, w.home, "gpg", "#!/bin/sh\necho no key >&2; exit 1\n")
	_, _, err = w.commit(ctx, w.wt(), "x", true)
	if !errors.Is(err, ErrUnsigned) {
		t.Errorf("a failed signature is no hook: %v", err)
	}
}

func TestCommitTreeRefusesAMovedBranch(t *testing.T) {
	w := newWorld(t)
	wt := w.wt()
	w.sh(w.path, "commit", "-q", "--allow-empty", "-m", "meanwhile")
	tip := w.sh(w.repo, "rev-parse", branch)
	_, err := w.git.CommitTree(ctx, wt, TreeCommit{
		Tree:    w.base + "^{tree}",
		Parent:  w.base,
		Message: "x\n",
		Reflog:  "tilth: x",
	})
	if err == nil {
		t.Error("no error")
	}
	equal(t, "tip", w.sh(w.repo, "rev-parse", branch), tip)
}

func TestCommitTreeOver(t *testing.T) {
	w := newWorld(t)
	seed, err := w.git.CommitTree(ctx, w.wt(), TreeCommit{
		Tree:    w.base + "^{tree}",
		Parent:  w.base,
		Message: "seed: 1\n",
		Reflog:  "tilth: seed",
	})
	must(t, err)
	write(t, w.path, "b.txt", "b\n")
	tree, _ := w.stage()
	again, err := w.git.CommitTree(ctx, w.wt(), TreeCommit{
		Tree:    tree,
		Parent:  w.base,
		Over:    seed,
		Message: "seed: 2\n",
		Reflog:  "tilth: seed",
	})
	must(t, err)
	equal(t, "branch", w.sh(w.repo, "rev-list", "--parents", "-1", branch), again+" "+w.base)
	if _, err := w.git.CommitTree(ctx, w.wt(), TreeCommit{
		Tree:    tree,
		Parent:  w.base,
		Over:    seed,
		Message: "seed: 3\n",
		Reflog:  "tilth: seed",
	}); err == nil {
		t.Error("replaced a tip that is none")
	}
}

func TestCommitDryRun(t *testing.T) {
	w := newWorld(t)
	w.calls = nil
	d := dryRun(w.git)
	_, err := d.BeforeCommit(ctx, w.wt(), "x")
	must(t, err)
	_, err = d.CommitTree(ctx, w.wt(), TreeCommit{
		Tree:    w.base + "^{tree}",
		Parent:  w.base,
		Message: "x",
		Reflog:  "x",
	})
	must(t, err)
	var skipped []string
	for _, c := range w.calls {
		if c.Mutates != c.Skipped {
			t.Errorf("ran or was not told: %+v", c)
		}
		if c.Skipped {
			skipped = append(skipped, subcommand(c.Args))
		}
	}
	equalLists(t, "skipped", skipped, []string{"commit-tree", "update-ref"})
	equal(t, "tip", w.sh(w.repo, "rev-parse", branch), w.base)
}
