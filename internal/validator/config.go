package validator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/packages"
)

// FromConfig reads the values of tilth.validator, `name=command`. A later value of a name replaces an earlier one, and
// an empty value clears the list, as for git's own settings. The commands' environment names the task.
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
			return nil, fmt.Errorf("validator %q: the name %q has a quote or another shell character",
				value, name)
		case command == "":
			return nil, fmt.Errorf("validator %q has no command", name)
		}
		v := Validator{Name: name, Command: command, Env: []string{packages.TaskVar + "=" + task}, Configured: true,
			From: "tilth.validator"}
		if i := slices.IndexFunc(vs, func(old Validator) bool { return old.Name == name }); i >= 0 {
			vs[i] = v
			continue
		}
		vs = append(vs, v)
	}
	return vs, nil
}
