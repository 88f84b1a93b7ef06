package tool

import "strings"

// A small reader of shell command lines, as much as the guard needs to tell a
// command from a word in quotes: quoting, lists, pipes, redirections, here
// documents, and what is nested in substitutions. It never fails; a line that no
// shell would take is read as far as it goes. Variables and globs stay unexpanded.

// shWord is one word after quote removal.
type shWord struct {
	text   string
	quoted bool     // some of it stood in quotes: no keyword, no tilde
	vars   []string // variables that are expanded in it
	subs   []string // commands in its substitutions: $(...), `...`, <(...)
}

// shRedir is one redirection.
type shRedir struct {
	op     string // ">", ">>", "<", "<<", "<<<", ...
	target shWord // the file, or the delimiter of a here document
	body   string // of a here document
}

// shCommand is one simple command.
type shCommand struct {
	words  []shWord
	redirs []shRedir
	piped  bool // its output is the next command's input
	depth  int  // how many parentheses it stands in
}

// shParser reads one command line.
type shParser struct {
	src   string
	pos   int
	cmds  []shCommand
	cur   shCommand
	depth int
	subs  []string // commands nested in here documents

	word    strings.Builder
	w       shWord
	inWord  bool
	pending []heredoc
	redir   string // operator that waits for its word
}

type heredoc struct {
	cmd, redir int // where the body belongs: an index, and len(cmds) for the current one
	delim      string
	literal    bool // a quoted delimiter: nothing in the body is expanded
	stripTabs  bool
}

// parseShell splits a command line into its simple commands. subs are the
// commands that its here documents would run.
func parseShell(src string) (cmds []shCommand, subs []string) {
	p := &shParser{src: strings.ReplaceAll(src, "\\\n", "")}
	for p.pos < len(p.src) {
		p.step()
	}
	p.endCommand(false)
	return p.cmds, p.subs
}

// step reads what is at the position.
func (p *shParser) step() {
	c := p.src[p.pos]
	switch {
	case c == ' ' || c == '\t' || c == '\r':
		p.endWord()
		p.pos++
	case c == '\n':
		p.pos++
		p.endCommand(false)
		p.readHeredocs()
	case c == '#' && !p.inWord:
		if i := strings.IndexByte(p.src[p.pos:], '\n'); i >= 0 {
			p.pos += i
		} else {
			p.pos = len(p.src)
		}
	case p.has("<(") || p.has(">("):
		p.pos += 2
		p.inWord = true
		p.w.subs = append(p.w.subs, p.until(')'))
	case c == '<' || c == '>' || p.has("&>"):
		p.redirection()
	case strings.IndexByte(";&|()", c) >= 0:
		p.operator(c)
	default:
		p.wordPart(false)
	}
}

func (p *shParser) has(s string) bool { return strings.HasPrefix(p.src[p.pos:], s) }

// operator ends the current command.
func (p *shParser) operator(c byte) {
	if c == '(' && p.inWord && strings.HasSuffix(p.word.String(), "=") {
		// An array: its elements are words, not commands.
		p.pos++
		p.until(')')
		return
	}
	switch {
	case p.has("||") || p.has("&&") || p.has(";;"):
		p.pos += 2
		p.endCommand(false)
	case c == '|':
		p.pos++
		if p.has("&") {
			p.pos++
		}
		p.endCommand(true)
	case c == '(':
		p.pos++
		p.endCommand(false)
		p.depth++
	case c == ')':
		p.pos++
		p.endCommand(false)
		p.depth = max(0, p.depth-1)
	default:
		p.pos++
		p.endCommand(false)
	}
}

// redirection reads an operator such as 2>&1 or <<-; its word follows.
func (p *shParser) redirection() {
	if text := p.word.String(); p.inWord && !p.w.quoted && strings.Trim(text, "0123456789") == "" {
		p.resetWord() // the number of a file descriptor
	}
	p.endWord()
	for _, op := range []string{"&>>", "<<<", "<<-", "&>", ">>", "<<", ">&", "<&", "<>", ">|", ">", "<"} {
		if p.has(op) {
			p.pos += len(op)
			p.redir = op
			return
		}
	}
	p.pos++
}

// wordPart reads a quoted or unquoted piece of a word; in dq, inside double quotes.
func (p *shParser) wordPart(dq bool) {
	c := p.src[p.pos]
	p.inWord = true
	switch {
	case c == '\\':
		p.pos++
		if p.pos < len(p.src) {
			if dq && strings.IndexByte("$`\"\\", p.src[p.pos]) < 0 {
				p.word.WriteByte('\\')
			}
			p.w.quoted = true
			p.word.WriteByte(p.src[p.pos])
			p.pos++
		}
	case c == '\'' && !dq:
		p.pos++
		p.w.quoted = true
		p.word.WriteString(p.raw('\''))
	case c == '"' && !dq:
		p.pos++
		p.w.quoted = true
		for p.pos < len(p.src) && p.src[p.pos] != '"' {
			p.wordPart(true)
		}
		p.pos++
	case c == '`':
		p.pos++
		inner := p.backquoted()
		p.w.subs = append(p.w.subs, inner)
		p.word.WriteString("$(" + inner + ")")
	case c == '$':
		p.dollar(dq)
	default:
		p.word.WriteByte(c)
		p.pos++
	}
}

// dollar reads an expansion. Its source stays in the word's text.
func (p *shParser) dollar(dq bool) {
	start := p.pos
	p.pos++
	switch {
	case !dq && p.has("'"):
		p.pos++
		p.w.quoted = true
		p.word.WriteString(p.ansiQuoted())
		return
	case !dq && p.has("\""):
		return // a translated string is a double-quoted one
	case p.has("("):
		p.pos++
		p.w.subs = append(p.w.subs, p.until(')'))
	case p.has("{"):
		p.pos++
		inner := p.until('}')
		name := inner[:len(inner)-len(strings.TrimLeft(inner, nameChars))]
		p.w.vars = append(p.w.vars, name)
		p.w.subs = append(p.w.subs, substitutions(inner)...)
	default:
		rest := p.src[p.pos:]
		name := rest[:len(rest)-len(strings.TrimLeft(rest, nameChars))]
		p.pos += len(name)
		p.w.vars = append(p.w.vars, name)
	}
	p.word.WriteString(p.src[start:p.pos])
}

const nameChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// raw reads up to a quote, without any escapes.
func (p *shParser) raw(quote byte) string {
	start := p.pos
	if i := strings.IndexByte(p.src[start:], quote); i >= 0 {
		p.pos = start + i + 1
		return p.src[start : start+i]
	}
	p.pos = len(p.src)
	return p.src[start:]
}

// ansiQuoted reads the rest of $'...'. Only the escapes that can hide a letter of
// a command are decoded.
func (p *shParser) ansiQuoted() string {
	var out strings.Builder
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		p.pos++
		switch {
		case c == '\'':
			return out.String()
		case c != '\\' || p.pos >= len(p.src):
			out.WriteByte(c)
		default:
			out.WriteByte(p.ansiEscape())
		}
	}
	return out.String()
}

func (p *shParser) ansiEscape() byte {
	c := p.src[p.pos]
	p.pos++
	switch {
	case c == 'n':
		return '\n'
	case c == 't':
		return '\t'
	case c == 'x':
		return p.number(16, 2)
	case c >= '0' && c <= '7':
		p.pos--
		return p.number(8, 3)
	}
	return c
}

func (p *shParser) number(base, digits int) byte {
	n := 0
	for ; digits > 0 && p.pos < len(p.src); digits-- {
		d := strings.IndexByte("0123456789abcdef", p.src[p.pos]|0x20)
		if d < 0 || d >= base {
			break
		}
		n = n*base + d
		p.pos++
	}
	return byte(n)
}

// backquoted reads the rest of `...`, where a backslash guards a backquote.
func (p *shParser) backquoted() string {
	var out strings.Builder
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		p.pos++
		if c == '`' {
			break
		}
		if c == '\\' && p.pos < len(p.src) && strings.IndexByte("`\\$", p.src[p.pos]) >= 0 {
			c = p.src[p.pos]
			p.pos++
		}
		out.WriteByte(c)
	}
	return out.String()
}

// until reads up to the closing bracket that belongs to one already read.
func (p *shParser) until(closing byte) string {
	start := p.pos
	end := matching(p.src, start, closing)
	p.pos = min(end+1, len(p.src))
	return p.src[start:end]
}

func (p *shParser) resetWord() {
	p.word.Reset()
	p.w = shWord{}
	p.inWord = false
}

// endWord files the word under the current command.
func (p *shParser) endWord() {
	if !p.inWord {
		return
	}
	p.w.text = p.word.String()
	w := p.w
	p.resetWord()
	if p.redir == "" {
		p.cur.words = append(p.cur.words, w)
		return
	}
	p.cur.redirs = append(p.cur.redirs, shRedir{op: p.redir, target: w})
	if strings.HasPrefix(p.redir, "<<") && p.redir != "<<<" && isDelimiter(w.text) {
		p.pending = append(p.pending, heredoc{
			cmd: len(p.cmds), redir: len(p.cur.redirs) - 1,
			delim: w.text, literal: w.quoted, stripTabs: p.redir == "<<-",
		})
	}
	p.redir = ""
}

// isDelimiter tells a here document from a shift in arithmetic, (( 1 << 2 )).
func isDelimiter(word string) bool {
	return word != "" && (word[0] < '0' || word[0] > '9')
}

// endCommand files the current command, if there is one.
func (p *shParser) endCommand(piped bool) {
	p.endWord()
	p.redir = ""
	if len(p.cur.words) == 0 && len(p.cur.redirs) == 0 {
		// `{ ...; } | x` and `( ... ) | x`: the pipe belongs to what ended there.
		if piped && len(p.cmds) > 0 {
			p.cmds[len(p.cmds)-1].piped = true
		}
		return
	}
	p.cur.piped, p.cur.depth = piped, p.depth
	p.cmds = append(p.cmds, p.cur)
	p.cur = shCommand{}
}

// readHeredocs takes the bodies that follow a line out of the text.
func (p *shParser) readHeredocs() {
	for _, h := range p.pending {
		var body strings.Builder
		for p.pos < len(p.src) {
			line := p.raw('\n')
			if h.stripTabs {
				line = strings.TrimLeft(line, "\t")
			}
			if line == h.delim {
				break
			}
			body.WriteString(line + "\n")
		}
		if h.cmd < len(p.cmds) {
			p.cmds[h.cmd].redirs[h.redir].body = body.String()
		}
		if !h.literal {
			p.subs = append(p.subs, substitutions(body.String())...)
		}
	}
	p.pending = nil
}

// substitutions returns the commands that a text in double quotes would run.
func substitutions(text string) []string {
	if !strings.ContainsAny(text, "$`") {
		return nil
	}
	p := &shParser{src: text}
	for p.pos < len(p.src) {
		p.wordPart(true)
	}
	return p.w.subs
}
