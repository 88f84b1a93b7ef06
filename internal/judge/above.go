package judge

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/project"
)

// planted are names that tools look for in the directories above the one they run in. The session's own directory has
// none of them; a worker could put one there.
var planted = append([]string{
	"node_modules", ".git", ".env", "CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "GEMINI.md", ".mcp.json", ".claude",
	".codex", ".gemini", ".opencode", "opencode.json", "opencode.jsonc",
}, project.Deciding...)

func removePlanted(session string) error {
	return removeIn(session, func(name string) bool { return slices.Contains(planted, name) })
}

// removeIn removes from a directory what is to go.
func removeIn(dir string, goes func(name string) bool) error {
	entries, err := os.ReadDir(dir)
	for _, d := range entries {
		if err == nil && goes(d.Name()) {
			err = proc.RemoveAll(filepath.Join(dir, d.Name()))
		}
	}
	return err
}

// users are the planted names that programs write in a home for their user; there, no tool takes them for a project's.
var users = map[string]bool{".npmrc": true, ".claude": true, ".codex": true, ".gemini": true, ".opencode": true}

// upper is a directory above the session's.
type upper struct {
	stamp stamp
	names []string // which of the planted names are there
}

// look notes the directory before what is in it: a name that comes later changes the stamp.
func (u *upper) look(dir string) {
	now, err := lookAt(unix.AT_FDCWD, dir+"/.")
	if err == nil && now.equal(u.stamp) && !u.stamp.fresh {
		return
	}
	now.fresh = err != nil || now.young()
	*u = upper{stamp: now}
	for _, name := range planted {
		if !users[name] && exists(filepath.Join(dir, name)) {
			u.names = append(u.names, name)
		}
	}
}

// readAbove takes the stamps of what tools look for above the session's directory, up to where a repository of the
// user's begins, in which others may be at work. Of a directory it says only that it is there.
func (p *Place) readAbove() map[string]stamp {
	found := map[string]stamp{}
	for dir := filepath.Dir(filepath.Dir(p.Dir)); ; dir = filepath.Dir(dir) {
		u := p.uppers[dir]
		if u == nil {
			u = &upper{}
			p.uppers[dir] = u
		}
		if u.look(dir); slices.Contains(u.names, ".git") {
			break
		}
		for _, name := range u.names {
			files := []string{name}
			if name == ".cargo" {
				files = []string{".cargo/config.toml", ".cargo/config"} // the rest is cargo's own
			}
			for _, name := range files {
				at := filepath.Join(dir, name)
				s, err := lookAt(unix.AT_FDCWD, at)
				if err != nil {
					continue
				}
				if s.isDir() {
					s = stamp{mode: unix.S_IFDIR}
				}
				found[at] = s
			}
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return found
}

// checkAbove names a file above the session's directory that changed the way in which tools run since the run began. It
// may be the user's own, so that nothing is done about it.
func (p *Place) checkAbove() error {
	now := p.readAbove()
	for at, s := range now {
		if was, ok := p.above[at]; !ok || !was.equal(s) {
			return fmt.Errorf(
				"%s was written during the run, and the tools that judge a change would read it: take it "+
					"away, or leave it if it is yours, then git tilth resume", at)
		}
	}
	return nil
}
