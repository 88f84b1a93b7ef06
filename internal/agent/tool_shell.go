package agent

import (
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/git-tilth/git-tilth/internal/text"
)

// inspector checks one command line and everything nested in it, in execution order.
type inspector struct {
	guard
	src    string
	cwd    string // directory of the next command; "" if unknown
	reason string // first reason for a refusal
}

// script checks a text that a shell will run.
func (in *inspector) script(src string) {
	var stmts []*syntax.Stmt
	// A shell runs the lines before a syntax error and no others. The loop does not end early, because the sequence
	// would call its body once more after an error and panic.
	for stmt, err := range syntax.NewParser().StmtsSeq(strings.NewReader(src)) {
		if err == nil {
			stmts = append(stmts, stmt)
		}
	}
	outer := in.src
	in.src = src
	for _, s := range stmts {
		syntax.Walk(s, in.visit)
	}
	in.src = outer
}

func (in *inspector) refuse(reason string) {
	if in.reason == "" {
		in.reason = reason
	}
}

// visit checks a node. It returns true if the nodes below must be checked.
func (in *inspector) visit(node syntax.Node) bool {
	switch n := node.(type) {
	case *syntax.BinaryCmd:
		if (n.Op == syntax.Pipe || n.Op == syntax.PipeAll) && anyCall(n.X, fetches) && anyCall(n.Y, runsInput) {
			in.refuse(pipedShell)
		}
	case *syntax.Stmt:
		if call, ok := n.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			in.call(call, n)
		}
	case *syntax.Redirect:
		target := in.word(n.Word)
		in.reaches(target)
		switch n.Op {
		case syntax.RdrOut, syntax.AppOut, syntax.RdrInOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
			in.refuse(in.writesTo(target, in.cwd))
		}
	case *syntax.ParamExp:
		if n.Param != nil && (n.Param.Value == "TILTH_SESSIONS_DIR" || n.Param.Value == "TILTH_HOME") {
			in.refuse(harnessDir)
		}
	}
	return in.reason == ""
}

const pipedShell = "running a script straight from the network is not allowed; download it, read it, then run it"

var (
	shells       = strings.Fields("sh bash zsh dash ksh ash fish")
	interpreters = strings.Fields("python python3 perl ruby node php")
	// writers are programs that create, change or remove their operands.
	writers = strings.Fields("rm mv cp tee touch mkdir rmdir unlink ln truncate install rsync chmod chown shred")
)

// anyCall reports whether kind accepts a simple command below node.
func anyCall(node syntax.Node, kind func(name string, args []*syntax.Word) bool) (found bool) {
	syntax.Walk(node, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			found = found || kind(path.Base(call.Args[0].Lit()), call.Args[1:])
		}
		return !found
	})
	return found
}

func fetches(name string, _ []*syntax.Word) bool { return name == "curl" || name == "wget" }

// runsInput reports whether a program runs its standard input: a shell without -c, or an interpreter without a file.
func runsInput(name string, args []*syntax.Word) bool {
	isCommand := func(w *syntax.Word) bool { return w.Lit() == "-c" }
	return slices.Contains(shells, name) && !slices.ContainsFunc(args, isCommand) ||
		slices.Contains(interpreters, name) && (len(args) == 0 || args[0].Lit() == "-")
}

// call checks one simple command against the deny list.
func (in *inspector) call(call *syntax.CallExpr, whole *syntax.Stmt) {
	var words []string
	for _, w := range call.Args {
		words = append(words, in.word(w))
		in.reaches(words[len(words)-1])
	}
	name, args := path.Base(words[0]), words[1:]
	runsText := slices.Contains(shells, name) || name == "eval" || name == "source" || name == "."
	if runsText && anyCall(whole, fetches) {
		in.refuse(pipedShell)
	}
	switch {
	case slices.Contains(shells, name):
		isCommand := func(w string) bool { return len(w) > 1 && w[0] == '-' && w[1] != '-' && w[len(w)-1] == 'c' }
		if i := slices.IndexFunc(args, isCommand); i >= 0 && i+1 < len(args) {
			in.script(args[i+1])
		}
	case slices.Contains(writers, name):
		recursive := given(args, "r", "--recursive") || given(args, "R", "")
		for _, w := range args {
			in.refuse(in.writesTo(w, in.cwd))
			if name == "rm" && recursive && !strings.HasPrefix(w, "-") && in.tooMuch(w, in.cwd) {
				in.refuse("rm -r of " + text.Clip(w, 60) + " is not allowed; remove files inside the worktree only")
			}
		}
	}
	switch name {
	case "git":
		in.refuse(git(args))
	case "git-tilth":
		in.refuse(tilthReason) // it would act on this run, or on another session of the user
	case "eval":
		in.script(strings.Join(args, " "))
	case "cd":
		in.cwd, _ = in.locate(strings.Join(args, " "), in.cwd)
	case "sudo", "doas", "pkexec", "su":
		in.refuse("changing the user is not allowed; work without sudo")
	}
}

// given reports whether arguments include an option: a short one by its letter, a long one in full or abbreviated as
// in git.
func given(args []string, short, long string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		if strings.HasPrefix(arg, "--") {
			return len(arg) > 3 && strings.HasPrefix(long, arg)
		}
		return len(arg) > 1 && arg[0] == '-' && short != "" && strings.Contains(arg, short)
	})
}

const tilthReason = "git tilth is for the person who runs this session; it cannot be run from inside a session"

// git returns the reason for refusing a git command line, or "".
func git(args []string) string {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") { // git's own options, some with a value
		if slices.Contains([]string{"-C", "-c", "--git-dir", "--work-tree", "--namespace"}, args[0]) {
			args = args[1:]
		}
		args = args[min(1, len(args)):]
	}
	if len(args) == 0 {
		return ""
	}
	switch args[0] {
	case "tilth":
		return tilthReason
	case "push":
		return "git push is not allowed; commit here, and the user decides what is published"
	case "reset":
		if given(args, "", "--hard") {
			return "git reset --hard is not allowed; undo single files with git restore"
		}
	case "clean":
		if given(args, "f", "--force") && !given(args, "n", "--dry-run") {
			return "git clean with force is not allowed; remove single files with rm"
		}
	}
	return ""
}

// reaches refuses a word that leads into a protected directory. A relative path (perhaps a pattern for grep) counts
// only if a file exists there. The path is the whole word, or the part after `=` or `:`.
func (in *inspector) reaches(word string) {
	parts := []string{word}
	if i := strings.IndexAny(word, "=:"); i >= 0 {
		parts = append(parts, word[i+1:])
	}
	for _, part := range parts {
		if part == "" || !strings.ContainsAny(part[:1], "/~.$") {
			continue
		}
		if p, ok := in.locate(part, in.cwd); ok && in.isProtected(p) {
			if _, err := os.Lstat(p); err == nil {
				in.refuse(harnessDir)
			}
		}
	}
}

// word removes the quotes of a word. It does not expand.
func (in *inspector) word(w *syntax.Word) string {
	var out strings.Builder
	in.unquote(&out, w.Parts, false)
	return out.String()
}

func (in *inspector) unquote(out *strings.Builder, parts []syntax.WordPart, inQuotes bool) {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			out.WriteString(unescape(p.Value, inQuotes))
		case *syntax.SglQuoted:
			value := p.Value
			if decoded, err := strconv.Unquote(`"` + value + `"`); p.Dollar && err == nil {
				value = decoded
			}
			out.WriteString(value)
		case *syntax.DblQuoted:
			in.unquote(out, p.Parts, true)
		default:
			from, to := int(p.Pos().Offset()), int(p.End().Offset())
			if 0 <= from && from <= to && to <= len(in.src) {
				out.WriteString(in.src[from:to])
			}
		}
	}
}

// unescape removes the backslashes of a literal. In double quotes they escape only a few characters.
func unescape(s string, inQuotes bool) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (!inQuotes || strings.IndexByte("$`\"\\", s[i+1]) >= 0) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
