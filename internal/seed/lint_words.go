package seed

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// vagueWords are judgements that no test can make. A criterion that holds one of
// them still passes if it also holds something exact.
var vagueWords = sync.OnceValue(func() *regexp.Regexp {
	return words("works well", "works correctly", "works properly", "works as expected", "as expected", "as needed",
		"as appropriate", "properly", "correctly", "appropriately", "appropriate", "suitable", "sensible", "reasonable",
		"reasonably", "adequate", "adequately", "fast", "faster", "quick", "quickly", "efficient", "efficiently",
		"performant", "scalable", "responsive", "snappy", "low latency", "good", "nice", "nicely", "clean", "cleanly",
		"better", "improved", "improve", "optimal", "optimized", "optimised", "high quality", "user-friendly",
		"user friendly", "intuitive", "easy", "easily", "simple", "seamless", "seamlessly", "smooth", "smoothly",
		"pretty", "beautiful", "robust", "robustly", "reliable", "reliably", "stable", "secure", "securely", "safe",
		"safely", "maintainable", "readable", "well-documented", "well documented", "well-tested", "well tested",
		"flexible", "modern", "gracefully", "graceful", "handled", "handles errors", "etc", "and so on", "various",
		"several", "some", "meaningful", "useful", "helpful", "clear", "consistent", "consistently")
})

func words(list ...string) *regexp.Regexp {
	for i, w := range list {
		list[i] = strings.ReplaceAll(regexp.QuoteMeta(w), " ", `\s+`)
	}
	return regexp.MustCompile(`(?i)(?:^|[^\pL\pN_-])(` + strings.Join(list, "|") + `)(?:$|[^\pL\pN_-])`)
}

// exact finds what makes a criterion checkable all the same: a number, something
// quoted, a path, a symbol, an option, an HTTP method, an exit.
var exact = pattern.New(
	"[0-9]|`[^`]+`|\"[^\"]+\"|“[^”]+”|(?:^|\\s)'[^']+'|\\w+\\(|(?:^|\\s)--?[a-z][\\w-]+|[=<>≤≥]|" +
		"\\b[A-Z]+_[A-Z_]+\\b|\\b(?:GET|POST|PUT|PATCH|DELETE|HEAD)\\b|" +
		"\\b(?:None|null|nil|true|false|True|False|empty|raises|throws|returns (?:an? )?\\w+Error)\\b",
)

// vague returns the vague word of a criterion that says nothing exact.
func vague(criterion string) (string, bool) {
	m := vagueWords().FindStringSubmatch(criterion)
	if m == nil || exact().MatchString(criterion) || namesSymbol(criterion) || len(pathsIn(criterion)) > 0 {
		return "", false
	}
	return m[1], true
}

var (
	pathToken   = pattern.New(`[\w@.+-]*(?:/[\w@.+-]+)+/?|[\w@+-]+(?:\.[\w@+-]+)*\.[A-Za-z][A-Za-z0-9]{0,9}`)
	codeEndings = wordSet(
		"py pyi go js mjs cjs jsx ts mts cts tsx rs rb " + "java kt kts c h cc cpp hpp cs php swift scala " +
			"clj ex exs erl hs lua pl sh bash sql html css scss vue svelte toml " +
			"yaml yml json xml ini cfg conf md txt rst proto graphql tf nix zig ml mod sum lock env",
	)
	wellKnown = wordSet("Makefile Dockerfile Rakefile Gemfile Justfile CMakeLists")

	symbolToken = pattern.New(
		"`[^`\\s]*[A-Za-z_][^`]*`|\\b[A-Za-z_]\\w*(?:\\.\\w+)*\\(|\\b[a-z]+(?:_[a-z0-9]+)+\\b|" +
			"\\b[a-z]+[a-z0-9]*[A-Z]\\w*\\b|\\b[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+\\b|" +
			"(?:^|\\s)--[a-z][\\w-]+|\\b(?:GET|POST|PUT|PATCH|DELETE) /\\S*",
	)
)

func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// pathsIn finds what reads like the path of a file, each once, in order. A slash alone is not enough ("and/or"): the
// last part has an ending that files have, or the path has several parts and ends in a slash.
func pathsIn(text string) []string {
	var out []string
	for _, p := range pathToken().FindAllString(text, -1) {
		p = strings.TrimPrefix(strings.TrimRight(p, "."), "./")
		isFile := codeEndings[strings.TrimPrefix(path.Ext(p), ".")] || wellKnown[path.Base(p)]
		if strings.Contains(text, "://"+p) || strings.HasPrefix(p, "/") || p == "" {
			continue
		}
		if isFile && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	separates := func(r rune) bool { return strings.ContainsRune(" \t\n.,;:()`\"'", r) }
	for _, w := range strings.FieldsFunc(text, separates) {
		if wellKnown[w] && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// namesSymbol reports whether a text names something in code: in backticks, called,
// in snake_case or camelCase, an option, or an HTTP route.
func namesSymbol(text string) bool { return symbolToken().MatchString(text) }
