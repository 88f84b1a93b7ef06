package tool

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// shWord is one word after quote removal. Expansions stay as they are written.
type shWord struct {
	text    string
	quoted  bool // some of it stood in quotes
	fetches bool // a command nested in it uses the network
}

// shRedir is one redirection.
type shRedir struct {
	op     syntax.RedirOperator
	target shWord // the file, or the delimiter of a here document
	body   string // of a here document
}

// inspector goes through one command line and everything nested in it, in the order in which a shell would run it.
type inspector struct {
	guard
	src     string
	cwd     string // where the next command runs; "" if unknown
	nesting int    // how many shells and substitutions this stands in
	left    *int   // bytes that may still be read: nested text is read again at each level
	fetched bool   // standard input comes from the network
	fetches bool   // something was fetched from the network
	reason  string // why the line is refused; the first that was found
}

const nestedTooDeeply = "commands are nested too deeply to be checked"

// script inspects a text that is handed to a shell.
func (in *inspector) script(src string) (reason string) {
	*in.left -= len(src) + 1
	if in.nesting >= maxNesting || *in.left < 0 {
		return nestedTooDeeply
	}
	inner := &inspector{guard: in.guard, src: src, cwd: in.cwd, nesting: in.nesting + 1, left: in.left}
	// A shell runs the lines before one that it cannot read, and nothing after it. The loop is not left early, because
	// the sequence calls its body once more after an error, and that would panic.
	for stmt, err := range syntax.NewParser().StmtsSeq(strings.NewReader(src)) {
		if err == nil {
			inner.visit(stmt)
		}
	}
	return inner.reason
}

// visit inspects what runs below a node.
func (in *inspector) visit(node syntax.Node) {
	syntax.Walk(node, func(n syntax.Node) bool {
		if in.reason != "" {
			return false
		}
		switch n := n.(type) {
		case *syntax.Stmt:
			call, ok := n.Cmd.(*syntax.CallExpr)
			if ok {
				in.call(call, n.Redirs)
			}
			return !ok
		case *syntax.BinaryCmd:
			isPipe := n.Op == syntax.Pipe || n.Op == syntax.PipeAll
			if isPipe {
				in.pipe(n.X, n.Y)
			}
			return !isPipe
		case *syntax.Redirect:
			in.redirection(n)
			return false
		case *syntax.Subshell:
			in.subshell(n.Stmts)
			return false
		case *syntax.CmdSubst:
			in.subshell(n.Stmts)
			return false
		case *syntax.ProcSubst:
			in.subshell(n.Stmts)
			return false
		case *syntax.ParamExp:
			if n.Param != nil && (n.Param.Value == "TILTH_SESSIONS_DIR" || n.Param.Value == "TILTH_HOME") {
				in.reason = harnessDir
			}
		}
		return true
	})
}

// subshell inspects statements whose change of directory ends with them.
func (in *inspector) subshell(stmts []*syntax.Stmt) {
	if in.nesting >= maxNesting {
		in.reason = nestedTooDeeply
		return
	}
	cwd := in.cwd
	in.nesting++
	for _, s := range stmts {
		in.visit(s)
	}
	in.nesting--
	in.cwd = cwd
}

func (in *inspector) pipe(from, to *syntax.Stmt) {
	input, before := in.fetched, in.fetches
	in.fetches = false
	in.visit(from)
	in.fetched = input || in.fetches
	in.visit(to)
	in.fetched, in.fetches = input, in.fetches || before
}

// call inspects one simple command, after what its words run.
func (in *inspector) call(call *syntax.CallExpr, redirs []*syntax.Redirect) {
	c, words := simple{inspector: in}, []shWord{}
	for _, a := range call.Assigns {
		in.visit(a)
	}
	for _, w := range call.Args {
		words = append(words, in.word(w))
	}
	for _, r := range redirs {
		c.redirs = append(c.redirs, in.redirection(r))
	}
	if in.reason == "" {
		in.reason = in.reaches(words)
	}
	if in.reason == "" {
		in.reason = c.program(words)
	}
}

func (in *inspector) redirection(r *syntax.Redirect) shRedir {
	out := shRedir{op: r.Op, target: in.word(r.Word)}
	if r.Hdoc != nil {
		out.body = in.word(r.Hdoc).text
	}
	if in.reason == "" {
		in.reason = in.reaches([]shWord{out.target})
	}
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrInOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
		if in.reason == "" {
			in.reason = in.writesTo(out.target)
		}
	}
	return out
}

// word inspects what a word runs, and takes its quotes off.
func (in *inspector) word(w *syntax.Word) shWord {
	before := in.fetches
	in.fetches = false
	in.visit(w)
	out := shWord{fetches: in.fetches}
	in.fetches = in.fetches || before
	in.unquote(&out, w.Parts, false)
	return out
}

func (in *inspector) unquote(out *shWord, parts []syntax.WordPart, inQuotes bool) {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			out.quoted = out.quoted || strings.Contains(p.Value, `\`)
			out.text += unescape(p.Value, inQuotes)
		case *syntax.SglQuoted:
			out.quoted = true
			value := p.Value
			if decoded, err := strconv.Unquote(`"` + value + `"`); p.Dollar && err == nil {
				value = decoded
			}
			out.text += value
		case *syntax.DblQuoted:
			out.quoted = true
			in.unquote(out, p.Parts, true)
		default:
			from, to := int(p.Pos().Offset()), int(p.End().Offset())
			if 0 <= from && from <= to && to <= len(in.src) {
				out.text += in.src[from:to]
			}
		}
	}
}

// unescape takes the backslashes out of a literal; in double quotes they guard a few characters only.
func unescape(s string, inQuotes bool) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (!inQuotes || strings.IndexByte("$`\"\\", s[i+1]) >= 0) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
