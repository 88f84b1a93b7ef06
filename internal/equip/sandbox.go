package equip

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// Sandbox returns the sandbox of everything that a worker starts; each part of a run adds to it. It is nil if the
// system has none, which is a note or a refusal by tilth.sandbox.
func (k *Kit) Sandbox() (*sandbox.Box, error) {
	state, system := k.SandboxState()
	says := strings.Replace(state.Detail, "none: ", "no sandbox: ", 1)
	switch {
	case state.Status == record.CheckFinding:
		return nil, held.Refuse(state.Command, "%s", says)
	case k.Config.Text("tilth.sandbox") == "off":
		k.noteSandbox("the sandbox is " + says)
		return nil, nil
	case system.Err != nil, len(system.Lacks) > 0 && (system.Short || k.Verbose):
		k.noteSandbox(says)
	}
	if system.Err != nil {
		return nil, nil
	}
	return k.Box(), nil
}

// Box returns the sandbox that the settings describe, even if this system has none.
func (k *Kit) Box() *sandbox.Box {
	paths := func(name string) (out []string) {
		for _, path := range k.Config.List(name) {
			out = append(out, k.InHome(path))
		}
		return out
	}
	cfg := sandbox.Config{Getenv: k.getenv, Root: k.Store.Root, Repo: k.places(), Read: paths("tilth.sandboxRead"),
		Hide:      paths("tilth.sandboxHide"),
		Installed: func(name string) bool { _, err := k.lookPath(name); return err == nil }}
	for _, path := range k.credentials {
		cfg.Hide = append(cfg.Hide, k.InHome(path))
	}
	for _, path := range k.gitFiles {
		cfg.Git = append(cfg.Git, k.InHome(path))
	}
	box := sandbox.Default(cfg)
	box.NoNetwork = k.Config.Text("tilth.sandboxNetwork") == "off"
	box.Write = append(box.Write, paths("tilth.sandboxWrite")...)
	box.MaxProcesses, box.MaxMemory = k.Config.Count("tilth.maxProcesses"), k.Config.Count("tilth.maxMemory")
	box.MinFree = k.Config.Count("tilth.minFree")
	return box
}

// places returns the repository's directories, including those from which it borrows objects.
func (k *Kit) places() []string {
	if k.Common == "" {
		return nil
	}
	out := []string{k.Common, k.Loc.TopLevel}
	if top, ok := strings.CutSuffix(k.Common, "/.git"); ok {
		out = append(out, top)
	}
	return append(out, gitx.ObjectDirs(k.Common)[1:]...)
}

// SandboxState returns the state of the configured sandbox on this system.
func (k *Kit) SandboxState() (state record.Check, system sandbox.System) {
	want, system := k.Config.Get("tilth.sandbox"), sandbox.Probe()
	offline := k.Config.Text("tilth.sandboxNetwork") == "off"
	const all = "the worker's processes run with your rights, and may outlive its turn"
	state = record.Check{Name: "sandbox", From: "tilth.sandbox", Status: record.CheckNote}
	switch {
	case want.Value == "off" && offline:
		state.Status, state.Command = record.CheckFinding, k.Change("tilth.sandbox", "auto")
		state.Detail = "tilth.sandboxNetwork = off needs the sandbox, which is off (" + want.Origin + ")"
	case want.Value == "off":
		state.Detail = "off (" + want.Origin + "): " + all
	case system.Err != nil && (want.Value == "on" || offline):
		var lift []string
		if want.Value == "on" {
			lift = append(lift, k.Change("tilth.sandbox", "auto"))
		}
		if offline {
			lift = append(lift, k.Change("tilth.sandboxNetwork", "on"))
		}
		state.Status, state.Command = record.CheckFinding, strings.Join(lift, " && ")
		state.Detail = "none: " + system.Err.Error()
	case system.Err != nil:
		state.Detail = fmt.Sprintf("none: %s; %s (tilth.sandbox)", system.Err, all)
	case len(system.Lacks) > 0:
		state.Detail = "the sandbox (" + system.Kind + ") has gaps: " + strings.Join(system.Lacks, "; ")
	default:
		state.Status, state.Detail = record.CheckOK, system.Kind+" holds"
	}
	return state, system
}

// credentialFiles returns the files in which git-credential-store keeps passwords, as the user's config names them.
func credentialFiles(entries []config.Entry) (files []string) {
	for _, e := range entries {
		if !strings.HasPrefix(e.Key, "credential.") || !strings.HasSuffix(e.Key, ".helper") {
			continue
		}
		if _, file, ok := strings.Cut(e.Value, "--file"); ok {
			files = append(files, strings.Trim(file, `= "'`))
		}
	}
	return files
}

// pathKeys are git settings that name files and directories for programs in the sandbox.
var pathKeys = []string{"core.excludesfile", "core.attributesfile", "core.hookspath", "commit.template",
	"init.templatedir", "mailmap.file", "blame.ignorerevsfile", "http.sslcainfo", "http.sslcapath",
	"gpg.ssh.allowedsignersfile"}

// namedFiles returns the credential files and the files of the configuration itself.
func namedFiles(entries []config.Entry) (files []string) {
	for _, e := range entries {
		if file, ok := strings.CutPrefix(e.Origin, "file:"); ok && filepath.IsAbs(file) {
			files = append(files, file)
		}
		if slices.Contains(pathKeys, e.Key) && e.Value != "" {
			files = append(files, e.Value)
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// InHome returns the absolute form of a configured path. Relative paths are in the home directory.
func (k *Kit) InHome(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(k.getenv("HOME"), strings.TrimPrefix(path, "~/"))
}

// noteSandbox prints a message about the sandbox once, in commands that may change something.
func (k *Kit) noteSandbox(says string) {
	if k.Changes && !k.notedSandbox.Swap(true) {
		k.Warnf("git-tilth: %s\n", says)
	}
}

// WithSandbox calls do with an environment for commands in a directory before a worker starts: setup and tests.
func (k *Kit) WithSandbox(dir string, do func(validator.ExecEnv) error) error {
	box, err := k.Sandbox()
	if err != nil {
		return err
	}
	if box != nil {
		temp, remove, err := proc.TempDir()
		if err != nil {
			return err
		}
		defer remove()
		box = box.Of(dir).With(dir).In(temp)
	}
	env := agent.ToolEnv(k.Git.Environ(k.Ctx, dir), k.Config.List("tilth.sandboxEnv"))
	return do(validator.ExecEnv{Dir: dir, Env: env, Box: box})
}
