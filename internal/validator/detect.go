package validator

import "context"

// Detect finds the checks of the project in the worktree root. env is the whole
// environment in which they will run; nil means this process's own.
func Detect(ctx context.Context, root string, t Tasks, env []string) []Validator {
	p := survey(root, t, env)
	var vs []Validator
	for _, kind := range kinds {
		vs = append(vs, kind(ctx, p)...)
	}
	return vs
}

// kinds are the kinds of projects that are known, in the order in which their
// checks run: the quick ones first.
var kinds = []func(context.Context, *project) []Validator{python, golang, node, rust}
