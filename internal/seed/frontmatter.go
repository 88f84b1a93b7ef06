package seed

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// frontKey is one "key: value" of a frontmatter block. A list has its items beside its text.
type frontKey struct {
	key, value string
	list       []string
	line       int
}

// splitFrontmatter takes a leading block between two --- lines off a text. It understands what task files need of
// YAML: keys at the left margin, plain or quoted; values that are plain, quoted, folded (>) or literal (|), each over
// one line or several; lists of such scalars. A map below a key is read as plain text. Text that is not quite YAML,
// such as a title with words behind its quotes, is taken as it stands.
func splitFrontmatter(name, text string) (keys []frontKey, body string, bodyLine int, err error) {
	lines := strings.Split(text, "\n")
	if strings.TrimRight(lines[0], " \t") != "---" {
		return nil, text, 1, nil
	}
	end := 1
	for ; end < len(lines); end++ {
		if l := strings.TrimRight(lines[end], " \t"); l == "---" || l == "..." {
			break
		}
	}
	if end == len(lines) {
		return nil, "", 0, importError(name, 1, "end it with a line of ---", "the frontmatter is not closed")
	}
	seen := map[string]bool{}
	for i := 1; i < end; i++ {
		key, first, ok := frontLine(lines[i])
		if !ok {
			continue
		}
		if seen[key] {
			return nil, "", 0, importError(name, i+1, "keep one of them", "the frontmatter has %s twice", key)
		}
		seen[key] = true
		k := frontKey{key: key, line: i + 1}
		below := belowKey(lines[i+1 : end])
		i += len(below)
		k.value, k.list = frontValue(first, below)
		keys = append(keys, k)
	}
	return keys, strings.Join(lines[end+1:], "\n"), end + 2, nil
}

// frontLine splits a key at the left margin from its value.
func frontLine(l string) (key, value string, ok bool) {
	if l == "" || strings.ContainsRune(" \t#-", rune(l[0])) {
		return "", "", false
	}
	if l[0] == '"' || l[0] == '\'' {
		var rest string
		if key, rest, ok = quoted(l); !ok {
			return "", "", false
		}
		l = rest
	}
	before, value, ok := strings.Cut(l, ":")
	if !ok || (value != "" && value[0] != ' ' && value[0] != '\t') {
		return "", "", false
	}
	return strings.TrimSpace(key + before), strings.TrimSpace(value), true
}

// belowKey lists the lines that belong to the value of a key: indented and empty ones, and, also at the margin, the
// items of a list and the end of one in brackets.
func belowKey(lines []string) []string {
	for i, l := range lines {
		if l != "" && !strings.ContainsRune(" \t]", rune(l[0])) && l != "-" && !strings.HasPrefix(l, "- ") {
			return lines[:i]
		}
	}
	return lines
}

var blockHeader = pattern.New(`^([|>])[-+1-9]*(?:[ \t]+#.*)?$`)

// frontValue reads a value of which head stands behind its key and below under it. Blanks around it say nothing, so
// that the ways in which a block may end make no difference.
func frontValue(head string, below []string) (value string, list []string) {
	if m := blockHeader().FindStringSubmatch(head); m != nil {
		if m[1] == ">" {
			return fold(below), nil
		}
		return strings.TrimSpace(strings.Join(dedentAll(below), "\n")), nil
	}
	if items := listItems(below); plainScalar(head) == "" && len(items) > 0 {
		for _, item := range items {
			text, _ := frontValue(strings.TrimSpace(item[0]), item[1:])
			list = append(list, text)
		}
		return "", list
	}
	if strings.HasPrefix(head, "[") {
		return flowList(fold(append([]string{head}, below...)))
	}
	if head != "" && (head[0] == '"' || head[0] == '\'') {
		text, rest, ok := quoted(fold(append([]string{head}, below...)))
		if ok && plainScalar(rest) == "" {
			return text, nil
		}
	}
	lines := []string{plainScalar(head)}
	for _, l := range below {
		lines = append(lines, plainScalar(l))
	}
	return fold(lines), nil
}

// listItems splits the lines of a list into its items, each without its dash.
func listItems(lines []string) (items [][]string) {
	for _, l := range lines {
		text := strings.TrimSpace(l)
		switch {
		case text == "" || text[0] == '#':
		case text == "-" || strings.HasPrefix(text, "- "):
			items = append(items, []string{text[1:]})
		case len(items) == 0:
			return nil
		default:
			items[len(items)-1] = append(items[len(items)-1], l)
		}
	}
	return items
}

// flowList reads [a, "b, c"]. What is no such list is a plain text.
func flowList(text string) (string, []string) {
	var list []string
	for rest := strings.TrimSpace(text[1:]); rest != ""; {
		switch rest[0] {
		case ']':
			if plainScalar(rest[1:]) != "" {
				return text, nil
			}
			return "", append([]string{}, list...)
		case '"', '\'':
			item, after, ok := quoted(rest)
			if !ok {
				return text, nil
			}
			list, rest = append(list, item), after
		case ',':
			rest = rest[1:]
		default:
			n := strings.IndexAny(rest, ",]")
			if n < 0 {
				return text, nil
			}
			list, rest = append(list, strings.TrimSpace(rest[:n])), rest[n:]
		}
		rest = strings.TrimSpace(rest)
	}
	return text, nil
}

// plainScalar takes a comment off an unquoted scalar.
func plainScalar(s string) string {
	if strings.HasPrefix(strings.TrimSpace(s), "#") {
		return ""
	}
	for _, mark := range []string{" #", "\t#"} {
		s, _, _ = strings.Cut(s, mark)
	}
	return strings.TrimSpace(s)
}

// fold joins lines as YAML does: a break is a space, an empty line is a break. A backslash at the end of a line, which
// only a quoted text has, joins without the space.
func fold(lines []string) string {
	var text []byte
	broken := true
	for _, l := range lines {
		l = strings.TrimSpace(l)
		switch before, joined := bytes.CutSuffix(text, []byte(`\`)); {
		case l == "":
			text, broken = append(text, '\n'), true
		case joined && !bytes.HasSuffix(before, []byte(`\`)):
			text, broken = append(before, l...), false
		case broken:
			text, broken = append(text, l...), false
		default:
			text = append(append(text, ' '), l...)
		}
	}
	return strings.TrimSpace(string(text))
}

// dedentAll takes the indentation of the first line with text off all lines.
func dedentAll(lines []string) []string {
	out, indent := []string{}, -1
	for _, l := range lines {
		if n := len(l) - len(strings.TrimLeft(l, " \t")); indent < 0 && n < len(l) {
			indent = n
		}
		out = append(out, dedent(l, max(indent, 0)))
	}
	return out
}

// quoted reads the quoted scalar at the start of s and returns what stands behind its closing quote. Escapes in double
// quotes are those that YAML shares with Go, and \/. Any other stays as it is.
func quoted(s string) (text, rest string, ok bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[0] == '\'' && strings.HasPrefix(s[i:], "''"), s[0] == '"' && strings.HasPrefix(s[i:], `\/`):
			i++
			b.WriteByte(s[i])
		case s[i] == s[0]:
			return b.String(), s[i+1:], true
		case s[0] == '"' && s[i] == '\\':
			r, _, behind, err := strconv.UnquoteChar(s[i:], '"')
			if err != nil {
				b.WriteByte('\\')
				continue
			}
			b.WriteRune(r)
			i = len(s) - len(behind) - 1
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}
