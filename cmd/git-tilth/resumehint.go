package main

import (
	"math"
	"strconv"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/session"
)

// resumeCommand is the command that goes on with a session, with higher caps where it would stop at once without.
func resumeCommand(id string, over []config.Reached) string {
	cmd := "git tilth resume "
	for _, o := range over {
		cmd += "--" + o.Setting.Flag + " " + raised(o) + " "
	}
	return cmd + id
}

// resumeOf is the command that goes on with a session that is not at hand, by the caps that hold here.
func (w *repoContext) resumeOf(o session.Overview) string {
	return resumeCommand(o.ID, w.config.Caps().Reached(loop.Usage(o.TokensUsed, o.Cost, 0)))
}

// raised is a multiple of a cap with room for at least half of it above what was used.
func raised(o config.Reached) string {
	limit := o.Limit * math.Ceil(o.Used/o.Limit+0.5)
	if limit == math.Trunc(limit) {
		return strconv.FormatFloat(limit, 'f', 0, 64)
	}
	return strconv.FormatFloat(limit, 'g', 6, 64)
}
