package tool

import "strings"

// matching returns the index of the bracket that closes the one opened just
// before start, or the length of src if there is none. It keeps its own stack and
// goes over the text once, so that no nesting makes it slow.
func matching(src string, start int, closing byte) int {
	stack := []byte{closing}
	var pending []string // delimiters of here documents that begin at the next line
	for i := start; i < len(src); i++ {
		top := stack[len(stack)-1]
		c := src[i]
		switch {
		case c == '\\':
			i++
		case c == top:
			stack = stack[:len(stack)-1]
			if len(stack) == 0 {
				return i
			}
		case c == '\n' && len(pending) > 0:
			i = skipBodies(src, i+1, pending) - 1
			pending = nil
		case c == '<' && top == ')' && strings.HasPrefix(src[i:], "<<"):
			delim, end := delimiter(src, i+2)
			if isDelimiter(delim) {
				pending = append(pending, delim)
			}
			i = end - 1
		case c == '\'' && top != '"':
			j := strings.IndexByte(src[i+1:], '\'')
			if j < 0 {
				return len(src)
			}
			i += 1 + j
		case c == '"' || c == '`':
			stack = append(stack, c)
		case c == '(' && (top != '"' || i > 0 && src[i-1] == '$'):
			stack = append(stack, ')')
		case c == '{' && i > 0 && src[i-1] == '$':
			stack = append(stack, '}')
		}
	}
	return len(src)
}

// delimiter reads the word after `<<`, and returns where it ends. For `<<<` there
// is none.
func delimiter(src string, pos int) (word string, end int) {
	if strings.HasPrefix(src[pos:], "<") {
		return "", pos + 1
	}
	rest := strings.TrimLeft(strings.TrimPrefix(src[pos:], "-"), " \t")
	start := len(src) - len(rest)
	stop := strings.IndexAny(rest, " \t\n;|&<>()")
	if stop < 0 {
		stop = len(rest)
	}
	unquoted := strings.NewReplacer("'", "", "\"", "", "\\", "").Replace(rest[:stop])
	return unquoted, start + stop
}

// skipBodies returns where the line after the last here document begins.
func skipBodies(src string, pos int, delims []string) int {
	for _, d := range delims {
		for pos < len(src) {
			line, _, found := strings.Cut(src[pos:], "\n")
			pos += len(line)
			if found {
				pos++
			}
			if strings.TrimLeft(line, "\t") == d {
				break
			}
		}
	}
	return pos
}
