package config

import (
	"slices"
	"strings"
)

// judging names the settings that decide how work is judged, beside the caps and the descriptions of agent programs.
var judging = []string{
	"tilth.baseUrl", "tilth.worker.agent", "tilth.worker.model", "tilth.worker.baseUrl", "tilth.evaluator.agent",
	"tilth.evaluator.model", "tilth.evaluator.baseUrl", "tilth.validator", "tilth.validatorTimeout", "tilth.judge",
	"tilth.judgeBorrow", "tilth.setup", "tilth.copy", "tilth.prompts", "tilth.maxFileSize", "tilth.sandboxEnv",
	"tilth.sandbox", "tilth.sandboxWrite", "tilth.sandboxHide", "tilth.sandboxNetwork",
}

// Judging returns the settings that decide how work is judged, sorted by name, passwords in URLs masked. What has no
// value is left out.
func (c *Config) Judging() []Value {
	names := slices.Clone(judging)
	for _, row := range caps {
		names = append(names, row.Setting.Name)
	}
	return slices.DeleteFunc(c.All(), func(v Value) bool {
		described := strings.HasPrefix(v.Name, "tilth.agent.")
		return v.Value == "" || v.Secret || !described && !slices.Contains(names, v.Name)
	})
}
