package lifecycle

import (
	"maps"
	"slices"

	"github.com/git-tilth/git-tilth/internal/record"
)

// compareSettings holds the settings against those of the last start. A prepared session has not been started.
func (o *Outcome) compareSettings(now map[string]record.Setting) {
	if o.Fresh || now == nil {
		return
	}
	o.SettingsChanged = settingsChanged(o.Record.Settings, now)
}

// settingsChanged lists the settings that differ from the recorded ones, sorted by name. Without a record it lists
// none.
func settingsChanged(noted, now map[string]record.Setting) []record.SettingChange {
	if noted == nil || now == nil {
		return nil
	}
	all := maps.Clone(noted)
	maps.Copy(all, now)
	var changed []record.SettingChange
	for _, name := range slices.Sorted(maps.Keys(all)) {
		before, after := noted[name], now[name]
		if before.Value != after.Value {
			changed = append(changed, record.SettingChange{
				Name: name, Before: before.Value, After: after.Value, Origin: after.Origin,
			})
		}
	}
	return changed
}
