package gitx

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestObjectsUnderAnotherName lets a name lead to the object of another one, which was there before the session.
func TestObjectsUnderAnotherName(t *testing.T) {
	w := newWorld(t, "a", "good")
	objects := filepath.Join(w.common, "objects")
	good := strings.TrimSpace(w.sh(w.repo, "rev-parse", "HEAD:a"))
	for name, plant := range map[string]func(evil string) error{
		"file": func(evil string) error {
			must(t, os.MkdirAll(filepath.Join(objects, evil[:2]), 0o777))
			return os.Symlink(filepath.Join(objects, good[:2], good[2:]), filepath.Join(objects, evil[:2], evil[2:]))
		},
		"directory": func(evil string) error {
			return os.Symlink(filepath.Join(objects, good[:2]), filepath.Join(objects, evil[:2]))
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := w.git.NewObjects(w.common, time.Now().Add(time.Hour)) // so that no file is new
			must(t, o.Check(ctx))
			evil := "ff" + good[2:]
			must(t, plant(evil))
			t.Cleanup(func() { os.RemoveAll(filepath.Join(objects, evil[:2])) })
			if err := o.Check(ctx); err == nil || !strings.Contains(err.Error(), evil) {
				t.Errorf("the object %s passed: %v", evil, err)
			}
		})
	}
}
