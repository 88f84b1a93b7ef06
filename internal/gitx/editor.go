package gitx

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// EditorName returns the command that git would open a file with for the user:
// GIT_EDITOR, core.editor, VISUAL, EDITOR. Everywhere else of this package the
// editor is one that does nothing; environ is the user's own environment.
func EditorName(ctx context.Context, environ []string, common string) (string, error) {
	args := []string{"var", "GIT_EDITOR"}
	if common != "" {
		args = append([]string{"--git-dir=" + common}, args...)
	}
	cmd := exec.CommandContext(ctx, findGit(environ), args...)
	cmd.Env = environ
	out, err := cmd.Output()
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(out)), nil
}

// Edit opens a file in the user's editor, on the terminal of this process, and
// waits until it is closed. As git does, it lets a shell read the command, which may
// hold arguments. The editor does not end because ctx does: what a person types is not thrown away.
func Edit(ctx context.Context, environ []string, common, path string, in, out, errOut *os.File) error {
	name, err := EditorName(ctx, environ, common)
	if err != nil {
		return err
	}
	// The shell waits for the editor over a Ctrl-C. With a trap that does something, the editor still gets the default.
	cmd := exec.Command("sh", "-c", "trap : INT; "+name+` "$@"`, name, path)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environ, in, out, errOut
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the editor %s: %w", name, err)
	}
	return nil
}
