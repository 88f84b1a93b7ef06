//go:build ignore

// longlines lists the lines of Go below the working directory that are longer than 120 columns, with a tab as four, and
// fails if there are any. A line that holds a part of a raw string or a URL is let through: it cannot be broken.
package main

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

const columns, tab = 120, 4

func main() {
	found := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		raw := rawLines(src)
		for i, line := range strings.Split(string(src), "\n") {
			width := utf8.RuneCountInString(line) + (tab-1)*strings.Count(line, "\t")
			if width > columns && !raw[i+1] && !strings.Contains(line, "://") {
				fmt.Printf("%s:%d: %d columns\n", path, i+1, width)
				found++
			}
		}
		return nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if found > 0 {
		fmt.Fprintf(os.Stderr, "%d lines are longer than %d columns\n", found, columns)
		os.Exit(1)
	}
}

// rawLines returns the numbers of the lines that hold a part of a raw string.
func rawLines(src []byte) map[int]bool {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if tok == token.STRING && lit[0] == '`' {
			first := file.Line(pos)
			for n := range strings.Count(lit, "\n") + 1 {
				lines[first+n] = true
			}
		}
	}
}
