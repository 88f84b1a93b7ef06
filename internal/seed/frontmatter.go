package seed

import (
	"strings"
)

// frontKey is one "key: value" of a frontmatter block.
type frontKey struct {
	key, value string
	line       int
}

// splitFrontmatter takes a leading block between two --- lines off a text. It
// understands what task files need of YAML: plain and quoted scalars, comments,
// and folded or literal blocks; lists and maps are kept as keys without a value.
func splitFrontmatter(name, text string) (keys []frontKey, body string, bodyLine int, err error) {
	lines := strings.Split(text, "\n")
	if strings.TrimRight(lines[0], " \t") != "---" {
		return nil, text, 1, nil
	}
	end := -1
	for i := 1; i < len(lines); i++ {
		if l := strings.TrimRight(lines[i], " \t"); l == "---" || l == "..." {
			end = i
			break
		}
	}
	if end < 0 {
		return nil, "", 0, &ImportError{File: name, Line: 1, Msg: "the frontmatter is not closed", Fix: "end it with a line of ---"}
	}
	for i := 1; i < end; i++ {
		key, value, ok := frontLine(lines[i])
		if !ok {
			continue
		}
		for _, k := range keys {
			if k.key == key {
				return nil, "", 0, &ImportError{File: name, Line: i + 1, Msg: "the frontmatter has " + key + " twice", Fix: "keep one of them"}
			}
		}
		at := i + 1
		if value == "" || value[0] == '>' || value[0] == '|' {
			value, i = frontBlock(lines, i, end)
		}
		keys = append(keys, frontKey{key: key, value: unquote(value), line: at})
	}
	return keys, strings.Join(lines[end+1:], "\n"), end + 2, nil
}

// frontLine splits a key that stands at the left margin from its value.
func frontLine(l string) (key, value string, ok bool) {
	if l == "" || l[0] == ' ' || l[0] == '\t' || l[0] == '#' || l[0] == '-' {
		return "", "", false
	}
	key, value, ok = strings.Cut(l, ":")
	if !ok || (value != "" && value[0] != ' ' && value[0] != '\t') {
		return "", "", false
	}
	return strings.TrimSpace(key), strings.TrimSpace(value), true
}

// frontBlock joins the indented lines below line i and returns the last of them.
func frontBlock(lines []string, i, end int) (string, int) {
	var parts []string
	for i+1 < end && (lines[i+1] == "" || lines[i+1][0] == ' ' || lines[i+1][0] == '\t') {
		i++
		parts = append(parts, strings.TrimSpace(lines[i]))
	}
	return strings.TrimSpace(strings.Join(parts, " ")), i
}

// unquote takes quotes or a trailing comment off a scalar.
func unquote(v string) string {
	if len(v) >= 2 && (v[0] == '"' || v[0] == '\'') {
		if end := strings.LastIndexByte(v, v[0]); end > 0 {
			inner := v[1:end]
			if v[0] == '\'' {
				return strings.ReplaceAll(inner, "''", "'")
			}
			return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(inner)
		}
	}
	if i := strings.Index(v, " #"); i >= 0 {
		v = v[:i]
	}
	return strings.TrimSpace(v)
}
