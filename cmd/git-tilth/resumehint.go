package main

import (
	"math"
	"strconv"

	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/session"
)

// resumeCommand is the command that goes on with a session, with higher caps where it would stop at once without.
func resumeCommand(id string, over []loop.Over) string {
	cmd := "git tilth resume "
	for _, o := range over {
		switch o.Reason {
		case loop.TokenCap:
			cmd += "--max-tokens " + strconv.FormatFloat(raised(o), 'f', 0, 64) + " "
		case loop.CostCap:
			cmd += "--max-cost " + strconv.FormatFloat(raised(o), 'g', 6, 64) + " "
		}
	}
	return cmd + id
}

// resumeOf is the command that goes on with a session that is not at hand, by the caps that hold here.
func (w *world) resumeOf(o session.Overview) string {
	return resumeCommand(o.ID, loop.OverCaps(w.config.Caps(), o.TokensUsed, o.Cost))
}

// raised is a multiple of a cap with room for at least half of it above what was used.
func raised(o loop.Over) float64 { return o.Limit * math.Ceil(o.Used/o.Limit+0.5) }
