package validator

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// taskVar tells a configured validator which task is being judged. Detected ones
// run the project's own tools, which have no use for it.
const taskVar = "TILTH_TASK"

// FromConfig reads the values of tilth.validator, in the order in which git gives them: `name=command`. A later one
// replaces an earlier one of the same name, and an empty value clears the list, as git's own multi-valued settings do.
// They are told the task.
func FromConfig(values []string, task string) ([]Validator, error) {
	var vs []Validator
	for _, value := range values {
		if strings.TrimSpace(value) == "" {
			vs = nil
			continue
		}
		name, command, ok := strings.Cut(value, "=")
		name, command = strings.TrimSpace(name), strings.TrimSpace(command)
		switch {
		case !ok || name == "":
			return nil, fmt.Errorf("validator %q: expected name=command, for example test=make test", value)
		case strings.ContainsAny(name, "\n\t\"'`$;&|<>"):
			return nil, fmt.Errorf("validator %q: %q is not a name", value, name)
		case command == "":
			return nil, fmt.Errorf("validator %q has no command", name)
		}
		v := Validator{Name: name, Command: command, Env: []string{taskVar + "=" + task}, Configured: true,
			From: "tilth.validator"}
		if i := slices.IndexFunc(vs, func(old Validator) bool { return old.Name == name }); i >= 0 {
			vs[i] = v
			continue
		}
		vs = append(vs, v)
	}
	return vs, nil
}

// environment is env with more on top, and with no task but the one told on purpose.
func environment(env, more []string) []string {
	if env == nil {
		env = os.Environ()
	}
	out := make([]string, 0, len(env)+len(more))
	for _, kv := range env {
		key, _, _ := strings.Cut(kv, "=")
		replaced := slices.ContainsFunc(more, func(m string) bool { return strings.HasPrefix(m, key+"=") })
		if key != taskVar && !replaced {
			out = append(out, kv)
		}
	}
	return append(out, more...)
}

// has reports whether a program can be started in dir with env.
func has(program, dir string, env []string) bool {
	_, err := proc.LookPath(program, dir, env)
	return err == nil
}
