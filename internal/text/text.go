// Package text has small operations on text: shortening, quoting, and safe display of untrusted text.
package text

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Wrap breaks lines that are longer than width runes between words. It keeps the indentation of bullets and indented
// lines.
func Wrap(s string, width int) string {
	var out []string
	for line := range strings.SplitSeq(s, "\n") {
		words := strings.TrimLeft(line, " \t")
		margin := line[:len(line)-len(words)]
		if strings.HasPrefix(words, "- ") || strings.HasPrefix(words, "* ") {
			margin += "  "
		}
		out = append(out, Hang(line, width, margin))
	}
	return strings.Join(out, "\n")
}

// Hang breaks a line that is longer than width runes between words. Each further line begins with margin.
func Hang(line string, width int, margin string) (made string) {
	for utf8.RuneCountInString(line) > width {
		begin := max(len(line)-len(strings.TrimLeft(line, " ")), len(margin))
		at := strings.LastIndexByte(Head(line, width+1), ' ')
		if at <= begin { // the word is longer than a line
			more := strings.IndexByte(line[min(begin, len(line)):], ' ')
			if more < 0 {
				break
			}
			at = begin + more
		}
		made += strings.TrimRight(line[:at], " ") + "\n"
		line = margin + strings.TrimLeft(line[at:], " ")
	}
	return made + line
}

// OneLine folds every run of white space into one blank.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Head returns the first n characters of a text.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n <= 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// HeadBytes returns the beginning of a text, at most n bytes of whole characters.
func HeadBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Clip is Head with an ellipsis where something is missing.
func Clip(s string, n int) string {
	if head := Head(s, n); len(head) < len(s) {
		return head + "…"
	}
	return s
}

// WithoutPassword returns a URL without its password. It returns other texts unchanged.
func WithoutPassword(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return s
	}
	if _, has := u.User.Password(); !has {
		return s
	}
	return u.Redacted()
}

// FirstLines joins the first n lines of a program's output that are neither empty nor git's hints.
func FirstLines(s string, n int) string {
	var kept []string
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "hint: ") {
			continue
		}
		kept = append(kept, line)
		if len(kept) == n {
			break
		}
	}
	return strings.Join(kept, "; ")
}

// IsObjectID reports whether s is the full SHA-1 or SHA-256 id of an object of git's.
func IsObjectID(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// IsSHA reports whether s has the form of a full or abbreviated commit id. Other texts are never passed to git as an
// id.
func IsSHA(s string) bool {
	return len(s) >= 4 && len(s) <= 64 && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// Plural counts things: "1 task", "3 tasks".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

const shellSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:@%+,"

// ShellQuote returns a line that a POSIX shell reads as these words. Words that need no quotes have none.
func ShellQuote(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if w == "" || strings.Trim(w, shellSafe) != "" {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		quoted[i] = w
	}
	return strings.Join(quoted, " ")
}

// GlobQuote makes filepath.Glob take a path literally.
func GlobQuote(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// IsCommand reports whether a hint is a command line rather than a sentence.
func IsCommand(hint string) bool {
	first, _, _ := strings.Cut(hint, " ")
	return slices.Contains([]string{"git", "claude", "export", "echo", "${EDITOR:-vi}", "rustup", "pyenv", "rbenv",
		"nodenv", "goenv", "mise", "asdf", "volta"}, first)
}
