// Command fakeagent plays an agent program. It takes the command lines of Claude Code and Codex, keeps conversations
// where they do, and has their output and failures. Called with --acp or acp, or by a name that ends in -acp, it speaks
// the Agent Client Protocol. A script controls it.
//
// Its name decides the program (install it as claude, codex or gemini), or FAKEAGENT_KIND. The environment names its
// script and its log:
//
//	FAKEAGENT_SCRIPT  file with {"steps":[...]}, see Step
//	FAKEAGENT_LOG     file to which one line of JSON is added for each run, see Run; the id of a process that was left
//	                  behind is written to a file beside it, <log>.stray
//
// A run takes the first step that is not used up and whose conditions hold. Without a script, or when no step is
// left, it succeeds and says "done".
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// call is one invocation, with the common parts of the command lines.
type call struct {
	kind     string
	args     []string
	prompt   string
	id       string // preset or to be resumed
	resume   bool
	model    string
	system   string
	maxTurns int
	readOnly bool
	dir      string
}

func main() {
	kind := os.Getenv("FAKEAGENT_KIND")
	if kind == "" {
		kind = filepath.Base(os.Args[0])
	}
	os.Exit(run(kind, os.Args[1:]))
}

func run(kind string, args []string) int {
	if len(args) > 0 && args[0] == "--version" {
		fmt.Println("0.0.0 (fake)")
		return 0
	}
	if kind == "claude" && len(args) > 0 && args[0] == "auth" {
		if os.Getenv("FAKEAGENT_LOGGED_OUT") == "" {
			return 0
		}
		fmt.Println("{\n  \"loggedIn\": false,\n  \"authMethod\": \"none\"\n}")
		return 1
	}
	dir, err := os.Getwd()
	if err != nil {
		return complain(err)
	}
	if playsACP(kind, args) {
		return playACP(kind, args, dir)
	}
	c, err := parse(kind, args)
	if err != nil {
		return complain(err)
	}
	c.dir = dir
	prompt, err := io.ReadAll(os.Stdin)
	if err != nil {
		return complain(err)
	}
	c.prompt = string(prompt)
	step, err := takeStep(c)
	if err != nil {
		return complain(err)
	}
	return play(c, step)
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, "fakeagent:", err)
	return 2
}

// valued are the options of both programs that take a value.
var valued = map[string]bool{
	"--output-format": true, "--permission-mode": true, "--allowedTools": true, "--disallowedTools": true,
	"--tools": true, "--max-turns": true, "--max-budget-usd": true,
	"--session-id": true, "--resume": true, "--model": true, "--append-system-prompt": true, "-m": true, "-s": true,
	"-c":        true,
	"--add-dir": true, "--setting-sources": true,
}

// parse reads a command line. As in the real program, an unknown option is an error.
func parse(kind string, args []string) (*call, error) {
	c := &call{kind: kind, args: args}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if !strings.HasPrefix(arg, "-") || arg == "-" || arg == "-p" {
			// codex: exec ... resume ID -
			if kind == "codex" && arg == "resume" && i+1 < len(args) {
				c.id, c.resume = args[i+1], true
				i++
			}
			continue
		}
		switch arg {
		case "--verbose", "--include-partial-messages", "--json", "--skip-git-repo-check",
			"--strict-mcp-config", "--no-session-persistence", "--ephemeral", "--ignore-rules":
			continue
		}
		if !valued[arg] || i+1 >= len(args) {
			return nil, fmt.Errorf("unknown option %s", arg)
		}
		i++
		if err := c.option(arg, args[i]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *call) option(name, value string) error {
	switch name {
	case "--session-id":
		c.id = value
	case "--resume":
		c.id, c.resume = value, true
	case "--model", "-m":
		c.model = value
	case "--append-system-prompt":
		c.system = value
	case "--max-turns":
		_, err := fmt.Sscan(value, &c.maxTurns)
		return err
	case "-s":
		c.readOnly = value == "read-only"
	case "--tools":
		c.readOnly = true
	}
	return nil
}
