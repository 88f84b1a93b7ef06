package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/git-tilth/git-tilth/internal/scripttest"
)

// TestMain puts git-tilth on PATH under its own name, so that the scripts reach it through git.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"git-tilth": func() { os.Exit(Main()) },
	})
}

// TestScripts runs testdata/script: each file is a story told with the real git, a real HTTP endpoint and real processes.
// TILTH_SCRIPTS narrows it to file names that match a pattern.
func TestScripts(t *testing.T) {
	dir := filepath.Join("..", "..", "testdata", "script")
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               scripttest.Setup,
		Cmds:                scripttest.Commands(),
		Condition:           scripttest.Condition,
	})
}
