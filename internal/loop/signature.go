package loop

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Unsigned is the command that turns signing off.
const Unsigned = "git config tilth.signCommits false"

// checkSignature makes one signature and checks that gpg-agent keeps the key's passphrase until the run ends.
func (a *attempt) checkSignature(ctx context.Context) ([]record.Check, error) {
	if !a.run.Sign {
		return nil, nil
	}
	wt, err := a.hooksAt(ctx)
	if err != nil {
		return nil, err
	}
	c := record.Check{Name: "signature", From: "tilth.signCommits", Status: record.CheckNote}
	if err := a.run.Git.TrySignature(ctx, wt, a.base); err != nil {
		c.Status, c.Detail, c.Command = record.CheckFinding, text.OneLine(err.Error()), Unsigned
		return []record.Check{c}, nil
	}
	night := time.Duration(a.run.o.Caps[config.MaxMinutes] * float64(time.Minute))
	if kept := a.passphraseKept(ctx); kept > 0 && (night == 0 || kept < night) {
		c.Detail = fmt.Sprintf("gpg-agent forgets the key's passphrase after %g minutes, and the run may take longer: "+
			"%s, then git -c tilth.signCommits=true tilth take --pick signs", kept.Minutes(), Unsigned)
		return []record.Check{c}, nil
	}
	return nil, nil
}

// signs reports whether the configured key can sign now.
func (a *attempt) signs(ctx context.Context) bool {
	if !a.run.Sign {
		return true
	}
	wt, err := a.hooksAt(ctx)
	return err == nil && a.run.Git.TrySignature(ctx, wt, a.base) == nil
}

// passphraseKept returns how long gpg-agent keeps a passphrase, or 0 if none is needed or the time is unknown.
func (a *attempt) passphraseKept(ctx context.Context) time.Duration {
	ask := func(argv ...string) string {
		out, err := proc.Run(ctx, proc.Cmd{Argv: argv, Dir: os.TempDir(), Env: a.run.Environ, Timeout: 10 * time.Second,
			OutputCap: 1 << 16})
		if err != nil || out.ExitCode != 0 {
			return ""
		}
		return string(out.Output)
	}
	format, err := a.run.Git.Line(ctx, gitx.InRepo(a.run.Common, "config", "gpg.format"))
	if err != nil || format != "" && format != "openpgp" {
		return 0
	}
	remembered := false // S KEYINFO <keygrip> <type> <serial> <id> <cached> <protection>
	for line := range strings.Lines(ask("gpg-connect-agent", "--no-autostart", "keyinfo --list", "/bye")) {
		f := strings.Fields(line)
		remembered = remembered || len(f) > 7 && f[1] == "KEYINFO" && f[6] == "1" && f[7] == "P"
	}
	if !remembered {
		return 0
	}
	kept := time.Duration(0)
	for line := range strings.Lines(ask("gpgconf", "--list-options", "gpg-agent")) {
		f := strings.Split(strings.TrimSpace(line), ":") // field 7 has the default, field 10 the setting
		if len(f) < 8 || f[0] != "default-cache-ttl" && f[0] != "max-cache-ttl" {
			continue
		}
		value := f[7]
		if len(f) > 9 && f[9] != "" {
			value = f[9]
		}
		if n, err := strconv.Atoi(value); err == nil && n > 0 && (kept == 0 || time.Duration(n)*time.Second < kept) {
			kept = time.Duration(n) * time.Second
		}
	}
	return kept
}
