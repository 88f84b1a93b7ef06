package view

import (
	"bufio"
	"io"
	"strings"

	"github.com/git-tilth/git-tilth/internal/text"
)

// table formats output for people and for scripts. A terminal gets headings and aligned columns, shortened to its
// width. A pipe gets the complete values, separated by tabs, without headings.
type table struct {
	term    Terminal
	columns []column
	rows    []tableRow
	whole   bool // notes are not cut: a terminal wraps them
}

type tableRow struct {
	cells []cell
	note  string // below the row; in a pipe one more field of it
}

type column struct {
	name  string
	right bool // align to the right: numbers
	grow  bool // gets the rest of the width, and is shortened first
	spare bool // left out, the last one first, of a table that is too wide otherwise
}

type cell struct {
	text  string
	style string
}

func (t *table) add(cells ...cell) { t.rows = append(t.rows, newRow("", cells...)) }

func newRow(note string, cells ...cell) tableRow {
	for i := range cells {
		cells[i].text = text.VisibleLine(cells[i].text)
	}
	return tableRow{cells, text.VisibleLine(note)}
}

func (t *table) write(w io.Writer) error {
	out := bufio.NewWriterSize(w, 64<<10)
	t.print(out)
	return out.Flush()
}

// print writes the table as a part of more.
func (t *table) print(out *bufio.Writer) {
	if t.term.TTY {
		t.aligned(out)
	} else {
		t.separated(out)
	}
}

func (t *table) separated(out *bufio.Writer) {
	for _, row := range t.rows {
		for i, c := range row.cells {
			if i > 0 {
				out.WriteByte('\t')
			}
			out.WriteString(t.term.Paint(c.style, c.text))
		}
		if row.note != "" {
			out.WriteString("\t" + row.note)
		}
		out.WriteByte('\n')
	}
}

const gutter = 2 // columns between two columns

func (t *table) aligned(out *bufio.Writer) {
	widths := t.widths()
	head := make([]cell, len(t.columns))
	for i, c := range t.columns {
		head[i] = cell{c.name, dim}
	}
	t.line(out, head, widths)
	for _, row := range t.rows {
		t.line(out, row.cells, widths)
		if note := "    " + row.note; row.note != "" {
			if !t.whole {
				note = Fit(note, t.term.Width)
			}
			out.WriteString(t.term.Paint(dim, note) + "\n")
		}
	}
}

// widths returns the width of each column; 0 is a column that is empty in all rows.
func (t *table) widths() []int {
	widths := make([]int, len(t.columns))
	for i := range t.columns {
		for _, row := range t.rows {
			widths[i] = max(widths[i], Width(row.cells[i].text))
		}
		if widths[i] > 0 {
			widths[i] = max(widths[i], Width(t.columns[i].name))
		}
	}
	if t.term.Width <= 0 {
		return widths
	}
	over := -t.term.Width - gutter
	for _, n := range widths {
		if n > 0 {
			over += n + gutter
		}
	}
	// Growing columns are cut to a readable width, then optional columns are removed, then growing columns are cut to
	// nothing.
	shrink := func(least int) {
		for i, c := range t.columns {
			if c.grow && over > 0 {
				cut := min(over, max(widths[i]-least, 0))
				widths[i] -= cut
				over -= cut
			}
		}
	}
	shrink(12)
	for i := len(t.columns) - 1; i >= 0 && over > 0; i-- {
		if t.columns[i].spare && widths[i] > 0 {
			over -= widths[i] + gutter
			widths[i] = 0
		}
	}
	shrink(1)
	return widths
}

func (t *table) line(out *bufio.Writer, row []cell, widths []int) {
	var b strings.Builder
	pending := 0 // blanks that are only written when something follows
	for i, c := range row {
		if widths[i] == 0 {
			continue
		}
		text := Fit(c.text, widths[i])
		pad := widths[i] - Width(text)
		if t.columns[i].right {
			pending, pad = pending+pad, 0
		}
		if text != "" {
			b.WriteString(strings.Repeat(" ", pending))
			b.WriteString(t.term.Paint(c.style, text))
			pending = 0
		}
		pending += pad + gutter
	}
	out.WriteString(b.String())
	out.WriteByte('\n')
}
