package held

import (
	"bytes"
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// survey finds the loose files in git status, except those that stay.
func (k *snapshotter) survey(ctx context.Context) error {
	entries, err := k.git.List(ctx, k.git.InWorktree(k.wt, "ls-files", "-z", "-v", "--cached", "--modified",
		"--deleted", "--others", "--exclude-standard", "--directory"))
	if err != nil {
		return err
	}
	var ignored, dirs []string
	stays := map[string]bool{}
	for _, p := range k.to.Ignored {
		ignored, stays[string(p)] = append(ignored, string(p)), true
	}
	for _, f := range entries {
		tag, name, _ := strings.Cut(f, " ")
		switch {
		case tag == "?" && within(name, stays):
			continue
		case tag == "?" && strings.HasSuffix(name, "/"):
			dirs = append(dirs, strings.TrimSuffix(name, "/"))
			continue
		case tag == "?":
			k.loose[name] = true
			continue
		case strings.EqualFold(tag, "H") && !unicode.IsLower(rune(tag[0])):
			k.tracked[name] = true
			continue
		}
		// Changed, deleted, unmerged, or marked so that git does not check it.
		k.tracked[name] = true
		if !strings.EqualFold(tag, "S") || Exists(filepath.Join(k.wt.Path, name)) {
			k.loose[name] = true
		}
	}
	if len(dirs) > 0 {
		now, err := ignoredIn(ctx, k.git, k.wt)
		if err != nil {
			return err
		}
		ignored = append(ignored, now...)
		for _, dir := range dirs {
			if err := k.takeDir(dir, ignored); err != nil {
				return err
			}
		}
	}
	return nil
}

// changes makes tracked files loose that a checkout of to removes or rewrites, because git may not write them again
// with these bytes and modes. Git keeps the directory of a submodule that to has too. changes displaces files that
// block new ones.
func (k *snapshotter) changes(ctx context.Context) error {
	differ, err := k.git.List(ctx, k.git.InWorktree(k.wt, "diff-index", "--cached", "-z", "--name-status",
		"--no-renames", k.to.Tip, "--"))
	if err != nil {
		return err
	}
	var come []string
	for f := range slices.Chunk(differ, 2) { // status, path
		name := f[len(f)-1]
		fi, err := os.Lstat(filepath.Join(k.wt.Path, name))
		switch {
		case f[0] == "D":
			come = append(come, name)
		case err == nil && k.tracked[name] && (!fi.IsDir() || f[0] == "A" || f[0] == "T"):
			k.loose[name] = true
		}
	}
	k.displace(come)
	return nil
}

// takeDir makes an untracked directory loose, or only its files that are not ignored.
func (k *snapshotter) takeDir(dir string, ignored []string) error {
	if slices.ContainsFunc(ignored, func(p string) bool { return strings.TrimSuffix(p, "/") == dir }) {
		return nil
	}
	if !slices.ContainsFunc(ignored, func(p string) bool { return strings.HasPrefix(p, dir+"/") }) {
		k.loose[dir] = true
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(k.wt.Path, dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := k.takeDir(path.Join(dir, e.Name()), ignored); err != nil {
			return err
		}
	}
	return nil
}

// list sorts the loose paths, and skips those inside a loose directory.
func (k *snapshotter) list() {
	k.Loose = nil
	for name := range k.loose {
		if !within(path.Dir(name), k.loose) {
			k.Loose = append(k.Loose, []byte(name))
		}
	}
	slices.SortFunc(k.Loose, bytes.Compare)
}

// within reports whether a path, or a directory above it, is in the set.
func within(name string, set map[string]bool) bool {
	for ; name != "." && name != "/"; name = path.Dir(name) {
		if set[name] {
			return true
		}
	}
	return false
}

// displace makes ignored files loose that a checkout of to would overwrite, with a tracked file (names) or a loose
// one.
func (k *snapshotter) displace(names []string) {
	for _, name := range k.to.Loose {
		names = append(names, string(name))
	}
	for _, name := range names {
		for at := name; at != "."; at = path.Dir(at) {
			fi, err := os.Lstat(filepath.Join(k.wt.Path, at))
			if err == nil && !k.tracked[at] && (at == name || !fi.IsDir()) {
				k.loose[at] = true
			}
		}
	}
}
