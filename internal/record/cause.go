package record

import (
	"strings"

	"github.com/git-tilth/git-tilth/internal/text"
)

// Cause returns the reason of a failed check in one line: the first test that failed and its error, as far as the
// runner names them.
func (r ValidatorResult) Cause() string {
	output := ""
	if r.Output != nil {
		output = *r.Output
	}
	if r.Tests == nil || len(r.Tests.Names) == 0 {
		return text.FailingLine(output)
	}
	test := r.Tests.Names[0]
	file, _, _ := strings.Cut(test, "::")
	bare := test[strings.LastIndex(test, ":")+1:]
	if file == bare {
		file = ""
	}
	line, found := text.FailingLineOf(output, file, bare)
	switch {
	case !found:
		return test + " failed"
	case strings.Contains(line, bare):
		return line
	}
	return test + ": " + line
}
