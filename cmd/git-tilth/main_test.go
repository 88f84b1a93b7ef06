package main

import (
	"bytes"
	"flag"
	"math/rand/v2"
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
	"github.com/git-tilth/git-tilth/internal/testsize"
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

// scripts are the files of testdata/script. Most of them run only in the full tests, so that make test ends within
// minutes. CI on a slow machine runs a third of the longest ones, in turns.
func scripts(t *testing.T) (files []string) {
	all, err := filepath.Glob(filepath.Join("..", "..", "testdata", "script", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	inTurns := testsize.IsSlow() && flag.Lookup("test.run").Value.String() == ""
	ofCI := rand.IntN(3)
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("\n[!full] stop 'it is")) && inTurns {
			if ofCI++; ofCI%3 != 0 {
				t.Logf("%s is not in its turn on this slow machine", filepath.Base(file))
				continue
			}
		}
		files = append(files, file)
	}
	return files
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
		Files:               scripts(t),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               scripttest.Setup,
		Cmds:                scripttest.Commands(),
		Condition:           scripttest.Condition,
	})
}
