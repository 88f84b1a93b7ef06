package loop

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/pattern"
)

// fenceAlone matches a message that is one fenced block.
var fenceAlone = pattern.New("(?s)^(?:```|~~~)[A-Za-z]*[ \t]*\r?\n(.*)\n[ \t]*(?:```|~~~)$")

// unfenced returns a message without surrounding white space and without an outer fence.
func unfenced(message string) string {
	message = strings.TrimSpace(message)
	if m := fenceAlone().FindStringSubmatch(message); m != nil {
		return strings.TrimSpace(m[1])
	}
	return message
}

// verdictOf finds the verdict in an evaluator's last message: the JSON object that is the whole message, or the object
// with word, the random word of this review. It ignores any other object, which may be a quotation. The error is a
// sentence for the evaluator.
func verdictOf(message, word string) (args string, err error) {
	whole := unfenced(message)
	if strings.HasPrefix(whole, "{") && json.Valid([]byte(whole)) {
		if named := reviewOf([]byte(whole)); named != nil && *named != word {
			return "", fmt.Errorf("\"review\" is %q in your answer, which is not the word of this "+
				"review: a quoted verdict does not count", *named)
		}
		return whole, nil
	}
	var own []string
	said := ""
	for _, object := range agent.JSONObjects(message) {
		if named := reviewOf(object); word == "" || named == nil || *named != word {
			continue
		}
		var v struct{ Verdict any }
		_ = json.Unmarshal(object, &v) // parseVerdict reports the errors
		if verdict := fmt.Sprint(v.Verdict); len(own) > 0 && verdict != said {
			return "", errors.New("the answer has two verdicts: give one")
		} else {
			said = verdict
		}
		own = append(own, string(object))
	}
	// If an object cannot be read, no other object replaces it.
	begun := 0
	if word != "" {
		begun = len(regexp.MustCompile(`"review"\s*:\s*"`+regexp.QuoteMeta(word)+`"`).FindAllString(message, -1))
	}
	switch {
	case begun > len(own) || len(own) == 0 && strings.HasPrefix(whole, "{"):
		return "", errors.New("the answer is not valid JSON: " +
			"send one complete object and escape the quotes in its texts")
	case len(own) == 0:
		return "", errors.New("the reviewer's answer was not a JSON verdict")
	}
	return own[len(own)-1], nil
}

// reviewOf returns an object's random word, or nil.
func reviewOf(object []byte) *string {
	var v struct{ Review *string }
	if json.Unmarshal(object, &v) != nil {
		return nil
	}
	return v.Review
}

// caseIn finds the case in a worker's last message: the JSON object that is the whole message, or the last object that
// has only members of a case. An object quoted from a file has other members. caseIn returns "" if there is none.
func caseIn(message string) string {
	if whole := unfenced(message); isCase([]byte(whole)) {
		return whole
	}
	for _, object := range slices.Backward(agent.JSONObjects(message)) {
		var members map[string]json.RawMessage
		if json.Unmarshal(object, &members) != nil {
			continue
		}
		for _, name := range []string{"summary", "ac_coverage", "work_arounds", "uncertainties"} {
			delete(members, name)
		}
		if len(members) == 0 && isCase(object) {
			return string(object)
		}
	}
	return ""
}

func isCase(raw []byte) bool {
	_, err := parseCase(string(raw))
	return err == nil
}

// repeated returns a member that a JSON object has twice, or "". JSON readers differ in the value they use, and
// unescaped quotes in a quoted text can add a second value.
func repeated(object string) string {
	dec := json.NewDecoder(strings.NewReader(object))
	if _, err := dec.Token(); err != nil {
		return ""
	}
	var names []string
	for dec.More() {
		key, err := dec.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return ""
		}
		if slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }) {
			return name
		}
		names = append(names, name)
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return ""
		}
	}
	return ""
}
