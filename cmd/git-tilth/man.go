package main

import (
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"
)

// date is the date of the man pages, set by the Makefile from git.
var date = "1970-01-01"

// manCommand writes the man pages, git-tilth(1) and one per command, from the definitions of -h.
func (p *process) manCommand() *cli.Command {
	return p.declare(traits{looks: true}, &cli.Command{
		Name: "man", Hidden: true, Usage: "write the man pages into a directory", ArgsUsage: "<directory>",
		Action: func(ctx *cli.Context) error {
			for name, page := range manPages(ctx.App, version, date, p.examples) {
				if err := os.WriteFile(filepath.Join(ctx.Args().First(), name+".1"), []byte(page), 0o644); err != nil {
					return fail("", err)
				}
			}
			return nil
		},
	})
}
