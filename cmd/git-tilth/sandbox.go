package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// sandbox is what all that a worker starts may do, beside what each part of a run adds to it. It is nil where the
// system has none: tilth.sandbox says whether that is a note, once, or a refusal.
func (w *repoContext) sandbox() (*sandbox.Box, error) {
	want := w.config.Text("tilth.sandbox")
	offline := w.config.Text("tilth.sandboxNetwork") == "off"
	if want == "off" {
		if offline {
			return nil, refuse("git config tilth.sandbox auto",
				"tilth.sandboxNetwork = off needs the sandbox, which is off")
		}
		return nil, nil
	}
	system := sandbox.Probe()
	switch {
	case system.Err != nil && (want == "on" || offline):
		return nil, refuse("git config tilth.sandbox auto, and tilth.sandboxNetwork on", "no sandbox: %s", system.Err)
	case system.Err != nil:
		w.noteSandbox("no sandbox: %s; what the worker starts can do all that you can (tilth.sandbox)", system.Err)
		return nil, nil
	case len(system.Lacks) > 0 && (system.Short || w.p.verbose):
		w.noteSandbox("the sandbox (%s) has gaps: %s", system.Kind, strings.Join(system.Lacks, "; "))
	}
	installed := func(name string) bool { _, err := w.lookPath(name); return err == nil }
	box := sandbox.Default(w.p.getenv, installed, w.store.Root)
	box.NoNetwork = offline
	for _, path := range slices.Concat(w.config.List("tilth.sandboxHide"), w.credentials) {
		box.Hide = append(box.Hide, w.inHome(path))
	}
	for _, path := range w.config.List("tilth.sandboxWrite") {
		box.Write = append(box.Write, w.inHome(path))
	}
	return box, nil
}

// credentialFiles are the files in which git-credential-store keeps passwords where the user's configuration names
// them.
func credentialFiles(entries []gitx.ConfigEntry) (files []string) {
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

// inHome is a path of a setting: with ~ expanded, and a relative one in the home directory.
func (w *repoContext) inHome(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(w.p.getenv("HOME"), strings.TrimPrefix(path, "~/"))
}

// noteSandbox says something of the sandbox, once a process and only where something is started.
func (w *repoContext) noteSandbox(format string, args ...any) {
	if w.p.changes && !w.p.notedSandbox {
		w.p.notedSandbox = true
		w.p.warnf("git-tilth: "+format+"\n", args...)
	}
}

// boxed does what runs commands in a directory before a worker has begun: setup and tests.
func (w *repoContext) boxed(dir string, do func(validator.Place) error) error {
	box, err := w.sandbox()
	if err != nil {
		return err
	}
	if box != nil {
		temp, remove, err := proc.TempDir("run")
		if err != nil {
			return err
		}
		defer remove()
		box = box.With(dir).In(temp)
	}
	env := agent.ToolEnv(w.git.Environ(w.p.ctx, dir), w.config.List("tilth.sandboxEnv"))
	return do(validator.Place{Dir: dir, Env: env, Box: box})
}
