package agent

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/text"
)

// globCap is the largest number of matches of one call.
const globCap = 1000

func (b *BuiltinTools) glob(ctx context.Context, in arguments) (ToolAnswer, error) {
	q := in.query
	// With ** nearly every directory matches, so directories are listed only without **.
	dirs := !strings.Contains(q.pattern, "**")
	var found []string
	cut, err := b.walk(ctx, q, func(name string, d fs.DirEntry) error {
		switch {
		case !d.IsDir():
			found = append(found, name)
		case dirs:
			found = append(found, name+"/")
		}
		return nil
	})
	if err != nil {
		return ToolAnswer{}, err
	}
	if len(found) == 0 && !cut {
		return ToolAnswer{Output: "no file matches " + text.Clip(q.pattern, 200)}, nil
	}
	slices.Sort(found)
	var out strings.Builder
	for _, name := range found[:min(len(found), globCap)] {
		out.WriteString(name + "\n")
	}
	if more := len(found) - globCap; more > 0 {
		fmt.Fprintf(&out, "[%d more matches are not shown; narrow the pattern]\n", more)
	}
	if cut {
		out.WriteString("[the search was ended after " + fmt.Sprint(walkCap) + " entries; narrow the pattern]\n")
	}
	return ToolAnswer{Output: out.String()}, nil
}
