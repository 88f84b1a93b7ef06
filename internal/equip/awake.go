package equip

import (
	"context"
	"sync"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// keepers are the programs that keep a machine awake while they run, of Linux and of macOS.
var keepers = [][]string{
	{"systemd-inhibit", "--what=sleep:idle", "--who=git-tilth", "--why=agents are working", "sleep", "infinity"},
	{"caffeinate", "-i"},
}

// awake returns the function that keeps the machine awake (true) or lets it sleep. It is nil if tilth.awake is off or
// no program for it is installed.
func (k *Kit) awake() func(bool) {
	if k.Config.Text("tilth.awake") == "off" {
		return nil
	}
	for _, argv := range keepers {
		if _, err := proc.LookPath(argv[0], "/", k.Environ); err == nil {
			return keepAwake(proc.Cmd{Argv: argv, Dir: "/", Env: k.Environ})
		}
	}
	return nil
}

// keepAwake starts the program with true and ends it with false. A failure does not stop a run.
func keepAwake(c proc.Cmd) func(bool) {
	var mu sync.Mutex
	end := func() {}
	return func(on bool) {
		mu.Lock()
		defer mu.Unlock()
		end()
		end = func() {}
		if !on {
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		var ended sync.WaitGroup
		ended.Go(func() { _, _ = proc.Run(ctx, c) })
		end = func() { cancel(); ended.Wait() }
	}
}
