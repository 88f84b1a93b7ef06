package seed

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"go.yaml.in/yaml/v3"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// splitFrontmatter takes a leading block between two --- lines off a text if the block is a mapping in YAML. Otherwise
// the first --- is a rule.
func splitFrontmatter(text string) (keys fields, body string, bodyLine int) {
	lines := strings.Split(text, "\n")
	if strings.TrimRight(lines[0], " \t") != "---" {
		return nil, text, 1
	}
	for end := 1; end < len(lines); end++ {
		if l := strings.TrimRight(lines[end], " \t"); l != "---" && l != "..." {
			continue
		}
		mapping := readMapping(lines[1:end])
		if mapping == nil && end > 1 {
			break
		}
		for i := 0; mapping != nil && i+1 < len(mapping.Content); i += 2 {
			value, _ := json.Marshal(plainValue(mapping.Content[i+1]))
			keys = append(keys, field{key: mapping.Content[i].Value, value: gjson.ParseBytes(value),
				line: mapping.Content[i].Line + 1})
		}
		return keys, strings.Join(lines[end+1:], "\n"), end + 2
	}
	return nil, text, 1
}

// keyLine is a key at the left margin with its value and a comment.
var keyLine = pattern.New(`^([^\s#:-][^:]*:[ \t]+)(.*?)(?:[ \t]+#.*)?[ \t]*$`)

// readMapping reads lines of YAML, nil for anything but a mapping. A value that is not YAML, such as a title with a
// colon in it or with words behind its quotes, is plain text.
func readMapping(lines []string) *yaml.Node {
	var doc yaml.Node
	if yaml.Unmarshal([]byte(strings.Join(lines, "\n")), &doc) != nil {
		plain := make([]string, len(lines))
		for i, l := range lines {
			if m := keyLine().FindStringSubmatch(l); m != nil && yaml.Unmarshal([]byte(l), new(yaml.Node)) != nil {
				l = m[1] + strconv.Quote(m[2])
			}
			plain[i] = l
		}
		doc = yaml.Node{}
		if yaml.Unmarshal([]byte(strings.Join(plain, "\n")), &doc) != nil {
			return nil
		}
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i < len(doc.Content[0].Content); i += 2 {
		if strings.ContainsAny(doc.Content[0].Content[i].Value, " \t\n") {
			return nil // a sentence with a colon
		}
	}
	return doc.Content[0]
}

// plainValue returns a value with all scalars as written text, also dates and numbers.
func plainValue(n *yaml.Node) any {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag != "!!null":
		return strings.TrimSpace(n.Value)
	case n.Kind == yaml.SequenceNode:
		list := []any{}
		for _, c := range n.Content {
			list = append(list, plainValue(c))
		}
		return list
	case n.Kind == yaml.MappingNode:
		object := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			object[n.Content[i].Value] = plainValue(n.Content[i+1])
		}
		return object
	}
	return nil
}
