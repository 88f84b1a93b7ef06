package fleet

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/gitx"
)

// A few objects that stand for billions of files are counted without creating a file.
func TestMeasureCountsWhatWouldBeLaidOut(t *testing.T) {
	dir := t.TempDir()
	g := gitx.New(os.Environ(), false, nil)
	run := func(stdin string, args ...string) string {
		t.Helper()
		c := gitx.InRepo(dir+"/.git", args...)
		c.Stdin = []byte(stdin)
		out, err := g.Mutate(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if _, err := g.Mutate(t.Context(), gitx.Command{Dir: dir, Args: []string{"init", "-q", "."}}); err != nil {
		t.Fatal(err)
	}
	commit := func(tree string) string {
		return run("", "-c", "user.name=x", "-c", "user.email=x@y", "commit-tree", "-m", "x", tree)
	}
	blob := run("0123456789", "hash-object", "-w", "--stdin")
	small := run("100644 blob "+blob+"\ta\n", "mktree")
	bomb := small
	for range 12 {
		var list strings.Builder
		for i := range 10 {
			fmt.Fprintf(&list, "040000 tree %s\td%d\n", bomb, i)
		}
		bomb = run(list.String(), "mktree")
	}
	base, session := commit(small), commit(small)
	grown := commit(run("100644 blob "+blob+"\ta\n100644 blob "+blob+"\tb\n040000 tree "+small+"\tc\n", "mktree"))
	s, err := openScratch(g, dir+"/.git", dir+"/scratch")
	if err != nil {
		t.Fatal(err)
	}
	defer s.remove()
	for _, c := range []struct {
		session, tip string
		limit        int64
		taken        bool
	}{
		{session, grown, 30, true}, // the session's own ten bytes, and twenty more than the base has
		{session, grown, 29, false}, {session, base, 10, true}, {session, base, 9, false}, {session, base, 0, true},
		{session, commit(bomb), 0, false}, {commit(bomb), base, 0, false},
	} {
		err := s.measure(t.Context(), c.session, base, []string{base, c.tip}, c.limit)
		if (err == nil) != c.taken {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if got := s.baseOf(t.Context(), base); got != "" {
		t.Errorf("without a branch the base is %q", got)
	}
	run("", "update-ref", "refs/heads/main", base)
	if got := s.baseOf(t.Context(), base); got != base {
		t.Errorf("the base is %q", got)
	}
}
