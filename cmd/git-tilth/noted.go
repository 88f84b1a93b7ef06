package main

import (
	"crypto/sha256"
	"fmt"

	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// maxNoted is the longest value of a setting that the record stores in full.
const maxNoted = 500

// noted returns the settings for validation and review, which each start of a run records. Prompts are recorded by
// their content, because their files may change while the setting does not.
func (w *repoContext) noted(o loop.Options) map[string]record.Setting {
	all := map[string]record.Setting{}
	for _, v := range w.Config.Judging() {
		value := v.Value
		if len(value) > maxNoted {
			value = fmt.Sprintf("%.*s... (sha256 %.16x)", maxNoted, value, sha256.Sum256([]byte(value)))
		}
		all[v.Name] = record.Setting{Value: value, Origin: v.Origin}
	}
	if o.Prompts != nil && w.Config.Text("tilth.prompts") != "" {
		p := all["tilth.prompts"]
		p.Value += " (" + o.Prompts.Sum() + ")"
		all["tilth.prompts"] = p
	}
	return all
}

// tellChanged prints the settings that changed since the last start, with their origins.
func tellChanged(show *runLines, changed []record.SettingChange) {
	for _, c := range changed {
		before, after := orUnset(c.Before), orUnset(c.After)
		line := fmt.Sprintf("since the last start %s changed from %s to %s", c.Name, before, after)
		if c.Origin != "" {
			line += " (" + c.Origin + ")"
		}
		show.Tell(text.VisibleLine(line))
	}
}

func orUnset(value string) string {
	if value == "" {
		return "nothing"
	}
	return text.Clip(fmt.Sprintf("%q", value), 200)
}
