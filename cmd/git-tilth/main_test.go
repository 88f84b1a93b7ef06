package main

import (
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/scripttest"
)

// TestMain puts git-tilth on PATH under its own name, so that the scripts reach it through git.
func TestMain(m *testing.M) {
	if strings.Contains(filepath.Base(os.Args[0]), ".test") {
		heedSignals()
		// Scripts wait for the disk, for signals and for time limits: as many as there are processors leave these idle.
		_ = flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0)))
	}
	testscript.Main(m, map[string]func(){
		"git-tilth": func() {
			sandbox.Without = os.Getenv("TEST_WITHOUT")
			if file := os.Getenv("TEST_CLOCK"); file != "" {
				scripttest.SkipWaits(file)
			}
			os.Exit(Main())
		},
		"nolandlock": scripttest.NoLandlock,
	})
}

// heedSignals handles the signals that the tests' parent ignores (nohup, a shell's background jobs): children inherit
// an ignored signal, but start with the default for a handled one.
func heedSignals() {
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

// TestScripts runs testdata/script. Each file is a story with the real git, a real HTTP endpoint and real processes.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "..", "testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               scripttest.Setup,
		Cmds:                scripttest.Commands(),
		Condition:           scripttest.Condition,
	})
}
