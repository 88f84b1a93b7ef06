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
	m := frontMatter().FindStringSubmatch(text)
	if m == nil {
		return nil, text, 1
	}
	mapping := readMapping(strings.Split(m[1], "\n"))
	if mapping == nil && m[1] != "" {
		return nil, text, 1
	}
	for i := 0; mapping != nil && i+1 < len(mapping.Content); i += 2 {
		var plain any
		asText(mapping.Content[i+1])
		_ = mapping.Content[i+1].Decode(&plain)
		value, _ := json.Marshal(plain)
		keys = append(keys, field{key: mapping.Content[i].Value, value: gjson.ParseBytes(value),
			line: mapping.Content[i].Line + 1})
	}
	return keys, text[len(m[0]):], 1 + strings.Count(m[0], "\n")
}

var frontMatter = pattern.New(`(?sm)\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\z)`)

// keyLine is a key at the left margin with its value and a comment.
var keyLine = pattern.New(`^([^\s#:-][^:]*:[ \t]+)(.*?)(?:[ \t]+#.*)?[ \t]*$`)

// readMapping reads lines of YAML, or returns nil for anything but a mapping. A value that is not YAML is plain text,
// for example a title with a colon or with words after its quotes.
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

// asText makes all scalars of a value texts as written, also dates and numbers.
func asText(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		n.Tag, n.Value = "!!str", strings.TrimSpace(n.Value)
	}
	for _, c := range n.Content {
		asText(c)
	}
}
