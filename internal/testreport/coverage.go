package testreport

import (
	"encoding/xml"
	"path"
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// Coverage reads a report of the lines that tests ran, and calls add with each line. The ending of the report's
// name decides its format; module is the module of a Go package.
func Coverage(name string, data []byte, module string, add func(file string, line int, ran bool)) {
	switch path.Ext(name) {
	case ".xml":
		readCobertura(data, add)
	case ".out":
		readProfile(string(data), module, add)
	case ".info":
		readLcov(string(data), add)
	}
}

// readCobertura reads the XML of coverage.py.
func readCobertura(data []byte, add func(string, int, bool)) {
	var doc struct {
		Sources []string `xml:"sources>source"`
		Classes []struct {
			File  string `xml:"filename,attr"`
			Lines []struct {
				Number int `xml:"number,attr"`
				Hits   int `xml:"hits,attr"`
			} `xml:"lines>line"`
		} `xml:"packages>package>classes>class"`
	}
	_ = xml.Unmarshal(data, &doc) // a damaged report has no lines
	for _, c := range doc.Classes {
		for _, source := range append(doc.Sources, "") {
			for _, l := range c.Lines {
				add(path.Join(source, c.File), l.Number, l.Hits > 0)
			}
		}
	}
}

var profileLine = pattern.New(`^(.+):(\d+)\.\d+,(\d+)\.\d+ \d+ (\d+)$`)

// readProfile reads a profile of go test. It names files by their packages.
func readProfile(report, module string, add func(string, int, bool)) {
	for line := range strings.Lines(report) {
		m := profileLine().FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		from, _ := strconv.Atoi(m[2])
		to, _ := strconv.Atoi(m[3])
		for n := from; n <= to; n++ {
			add(strings.TrimPrefix(m[1], module+"/"), n, m[4] != "0")
		}
	}
}

// readLcov reads the format of lcov.
func readLcov(report string, add func(string, int, bool)) {
	file := ""
	for line := range strings.Lines(report) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "SF:"); ok {
			file = name
		} else if of, ok := strings.CutPrefix(line, "DA:"); ok {
			number, hits, _ := strings.Cut(of, ",")
			n, _ := strconv.Atoi(number)
			add(file, n, hits != "0" && !strings.HasPrefix(hits, "0,"))
		}
	}
}
