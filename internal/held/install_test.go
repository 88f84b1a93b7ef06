package held

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/validator"
)

func TestRunCommands(t *testing.T) {
	dir := t.TempDir()
	in := validator.ExecEnv{Dir: dir}
	if err := RunCommands(context.Background(), []string{"echo a > made", "test -f made"}, in); err != nil {
		t.Error(err)
	}
	err := RunCommands(context.Background(), []string{"echo oops >&2; exit 4", "touch never"}, in)
	var failed *SetupError
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "exit code 4") || !strings.Contains(failed.Output,
		"oops") {
		t.Errorf("got %v", err)
	}
	if RunCommands(context.Background(), []string{"test ! -e never"}, validator.ExecEnv{Dir: dir}) != nil {
		t.Error("the command after the one that failed was run")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := RunCommands(ctx, []string{"true"}, validator.ExecEnv{Dir: dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
