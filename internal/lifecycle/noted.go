package lifecycle

import (
	"maps"
	"slices"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// notedSettings are the settings that decide how work is judged, as the last start of a run put them on record; nil
// where none did. The checkpoint knows where to look, so that a long run before costs nothing; where what it says does
// not hold, the record is read backwards.
func (h *Handle) notedSettings() (noted map[string]record.Setting, err error) {
	path := h.S.Path(session.RecordFile)
	find := func(l record.Line) (more bool) {
		if l.Type == "session_start" || l.Type == "session_resume" {
			switch ev := l.Event().(type) {
			case *record.SessionStart:
				noted = ev.Settings
			case *record.SessionResume:
				noted = ev.Settings
			}
		}
		return noted == nil
	}
	if h.Checkpoint.RunOffset > 0 {
		_, _, _ = record.Scan(path, h.Checkpoint.RunOffset, func(l record.Line) error {
			if !find(l) || l.Type == "context_reset" {
				return jsonl.ErrStop
			}
			return nil
		})
	}
	if noted == nil {
		_, err = record.Tail(path, find)
	}
	return noted, err
}

// compareSettings holds the settings against those of the last start. A prepared session has not been started.
func (o *Outcome) compareSettings(h *Handle, now map[string]record.Setting) error {
	if o.Fresh || now == nil {
		return nil
	}
	noted, err := h.notedSettings()
	o.SettingsChanged = settingsChanged(noted, now)
	return err
}

// settingsChanged lists what is set otherwise now than it was noted, sorted by name. Without a note nothing is known to
// have changed.
func settingsChanged(noted, now map[string]record.Setting) []record.SettingChange {
	if noted == nil || now == nil {
		return nil
	}
	all := maps.Clone(noted)
	maps.Copy(all, now)
	var changed []record.SettingChange
	maps.DeleteFunc(all, func(name string, _ record.Setting) bool { return config.IsGone(name) })
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
