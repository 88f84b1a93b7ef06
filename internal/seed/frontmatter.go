package seed

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// frontKey is one "key: value" of a frontmatter block. A list has its items beside its text.
type frontKey struct {
	key, value string
	list       []string
	line       int
}

// splitFrontmatter takes a leading block between two --- lines off a text. Its keys stand at the left margin, each with
// a value in YAML: a scalar or a list of scalars. What is another one, or not quite YAML, such as a title with words
// behind its quotes, is taken as the plain text that it is.
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
	key, value, ok = strings.Cut(l, ":")
	if !ok || (value != "" && value[0] != ' ' && value[0] != '\t') {
		return "", "", false
	}
	return strings.Trim(strings.TrimSpace(key), `"'`), strings.TrimSpace(value), true
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

// frontValue reads a value: head is the text after its key, below the lines under it. Blanks around it are ignored.
func frontValue(head string, below []string) (value string, list []string) {
	var v struct{ V yaml.Node }
	err := yaml.Unmarshal([]byte(strings.Join(append([]string{"v: " + head}, below...), "\n")), &v)
	if isText(v.V) && err == nil {
		return strings.TrimSpace(v.V.Value), nil
	}
	for _, item := range v.V.Content {
		if err != nil || v.V.Kind != yaml.SequenceNode || !isText(*item) {
			break
		}
		list = append(list, strings.TrimSpace(item.Value))
	}
	if err == nil && v.V.Kind == yaml.SequenceNode && len(list) == len(v.V.Content) {
		return "", list
	}
	plain := []string{withoutComment(head)}
	for _, l := range below {
		plain = append(plain, withoutComment(l))
	}
	return strings.TrimSpace(strings.Join(plain, " ")), nil
}

// isText reports whether a value is a scalar, and all of it the text that it says.
func isText(v yaml.Node) bool {
	return v.Kind == yaml.ScalarNode && v.Anchor == "" && v.Style&yaml.TaggedStyle == 0
}

// withoutComment takes a comment off a line of plain text.
func withoutComment(l string) string {
	if strings.HasPrefix(strings.TrimSpace(l), "#") {
		return ""
	}
	for _, mark := range []string{" #", "\t#"} {
		l, _, _ = strings.Cut(l, mark)
	}
	return strings.TrimSpace(l)
}
