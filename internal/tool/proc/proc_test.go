package proc

import (
	"context"
	"testing"
)

func TestSmoke(t *testing.T) {
	o, err := Run(context.Background(), Cmd{Argv: []string{"sh", "-c", "echo hi; exit 3"}})
	if err != nil || o.ExitCode != 3 || string(o.Output) != "hi\n" {
		t.Fatal(o, err)
	}
	o, err = Run(context.Background(), Cmd{Argv: []string{"bash", "-c", "(setsid env -i sleep 1000 & ) ; setsid sleep 1001 & disown; set -m; sleep 1002 & echo done"}})
	t.Logf("%+v %s %v", o, o.Output, err)
}
