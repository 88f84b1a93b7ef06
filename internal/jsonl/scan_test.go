package jsonl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// scanned returns the lines of a scan, forward and backward.
func scanned(t testing.TB, path string, from int64) (lines []string, offs []int64, end int64, skipped int) {
	t.Helper()
	end, skipped, err := Scan(path, from, func(off int64, line []byte) error {
		lines, offs = append(lines, string(line)), append(offs, off)
		return nil
	})
	must(t, err)
	if from == 0 {
		var back []string
		var backOffs []int64
		backSkipped, err := Tail(path, func(off int64, line []byte) bool {
			back, backOffs = append(back, string(line)), append(backOffs, off)
			return true
		})
		must(t, err)
		slices.Reverse(back)
		slices.Reverse(backOffs)
		if !slices.Equal(back, lines) || !slices.Equal(backOffs, offs) || backSkipped != skipped {
			t.Errorf("backwards: %.200q %v, %d skipped; forwards: %.200q %v, %d", back, backOffs, backSkipped, lines,
				offs, skipped)
		}
	}
	return lines, offs, end, skipped
}

func TestScanLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.jsonl")
	for name, c := range map[string]struct {
		text    string
		lines   []string
		end     int // -1: the whole text
		skipped int
	}{
		"empty":               {"", nil, -1, 0},
		"two":                 {"{\"a\":1}\n{}\n", []string{`{"a":1}`, `{}`}, -1, 0},
		"no object":           {"5\n[]\nnull\n\"x\"\n{}\n", []string{"{}"}, -1, 4},
		"garbage":             {"\x00\x00\n{bad}\n{} {}\n{}\n", []string{"{}"}, -1, 3},
		"blank lines":         {"\n\n{}\n  \n", []string{"{}"}, -1, 0},
		"crlf":                {"{}\r\n{}\r\n", []string{"{}", "{}"}, -1, 0},
		"torn":                {"{}\n{\"a\":", []string{"{}"}, 3, 0},
		"only torn":           {"{\"a\":", nil, 0, 0},
		"whole, no newline":   {"{}\n{\"a\":1}", []string{"{}", `{"a":1}`}, -1, 0},
		"number, no newline":  {"{}\n5", []string{"{}"}, 3, 0},
		"newline in a string": {"{\"a\":\"x\ny\"}\n{}\n", []string{"{}"}, -1, 2},
		"deep": {strings.Repeat("[", 1<<20) + "\n{\"a\":" + strings.Repeat("[", 1<<20) +
			strings.Repeat("]", 1<<20) + "}\n{}\n", []string{"{}"}, -1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, path, c.text)
			lines, offs, end, skipped := scanned(t, path, 0)
			want := int64(c.end)
			if c.end < 0 {
				want = int64(len(c.text))
			}
			if !slices.Equal(lines, c.lines) || end != want || skipped != c.skipped {
				t.Errorf("%q, end %d, skipped %d; want %q, %d, %d", lines, end, skipped, c.lines, want, c.skipped)
			}
			for i, off := range offs {
				if !strings.HasPrefix(c.text[off:], lines[i]) {
					t.Errorf("line %d is not at %d", i, off)
				}
			}
		})
	}
}

func TestScanGoesOnWhereItEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.jsonl")
	text := "{\"n\":1}\n5\n{\"n\":2}\n\n{\"n\":3}\n"
	// However the file grows, each object is handed out exactly once.
	for cut := range len(text) + 1 {
		write(t, path, text[:cut])
		first, _, end, _ := scanned(t, path, 0)
		write(t, path, text)
		rest, _, last, _ := scanned(t, path, end)
		if got := strings.Join(append(first, rest...), ""); got != `{"n":1}{"n":2}{"n":3}` || last != int64(len(text)) {
			t.Errorf("cut at %d: %s, end %d", cut, got, last)
		}
	}
}

func TestScanOfAShorterFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.jsonl")
	nothing := func(int64, []byte) error { return nil }
	if _, _, err := Scan(path, 0, nothing); err != nil {
		t.Errorf("a missing file: %v", err)
	}
	if _, _, err := Scan(path, 5, nothing); !errors.Is(err, ErrShrunk) {
		t.Errorf("a file gone missing: %v", err)
	}
	write(t, path, "{}\n")
	if _, _, err := Scan(path, 5, nothing); !errors.Is(err, ErrShrunk) {
		t.Errorf("a file cut: %v", err)
	}
	boom := errors.New("boom")
	if end, _, err := Scan(path, 0, func(int64, []byte) error { return boom }); !errors.Is(err, boom) || end != 0 {
		t.Errorf("an error of the reader: %d %v", end, err)
	}
	if end, _, err := Scan(path, 0, func(int64, []byte) error { return ErrStop }); err != nil || end != 3 {
		t.Errorf("ErrStop: %d %v", end, err)
	}
	if _, _, err := Scan(filepath.Dir(path), 0, nothing); err == nil {
		t.Error("a directory was read")
	}
}

// Lines of 10 MB and more cost the memory of one of them, not of the file. A line over the limit costs none.
func TestScanOfHugeLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.jsonl")
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	big := []byte(`{"ts":"t","type":"tool_result","payload":{"x":"` + strings.Repeat("y", 12<<20) + `"}}` + "\n")
	for range 5 {
		_, err = f.Write(big)
		must(t, err)
	}
	_, err = f.WriteString(`{"x":"`)
	must(t, err)
	block := bytes.Repeat([]byte{'z'}, 1<<20)
	for range MaxLine>>20 + 1 {
		_, err = f.Write(block)
		must(t, err)
	}
	_, err = f.WriteString("\"}\n{\"last\":1}\n")
	must(t, err)

	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var got []string
	_, skipped, err := Scan(path, 0, func(_ int64, line []byte) error {
		got = append(got, fmt.Sprintf("%.12s %d", line, len(line)))
		return nil
	})
	runtime.ReadMemStats(&after)
	must(t, err)
	want := fmt.Sprintf(`{"ts":"t","t %d`, len(big)-1)
	if !slices.Equal(got, []string{want, want, want, want, want, `{"last":1} 10`}) || skipped != 1 {
		t.Errorf("%q, %d skipped", got, skipped)
	}
	// Everything allocated, garbage included: each line grows a buffer to its own size by steps.
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 700 {
		t.Errorf("the scan allocated %d MiB", used)
	}
	got = nil
	skipped, err = Tail(path, func(_ int64, line []byte) bool {
		got = append(got, fmt.Sprintf("%.12s %d", line, len(line)))
		return len(got) < 3
	})
	must(t, err)
	if !slices.Equal(got, []string{`{"last":1} 10`, want, want}) || skipped != 1 {
		t.Errorf("backwards: %q, %d skipped", got, skipped)
	}
}

func TestTailReadsLittle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.jsonl")
	// A hole of 1 GiB in front: reading it would take longer than anybody waits, and no backward reader has to.
	f, err := os.Create(path)
	must(t, err)
	const hole = 1 << 30
	_, err = f.WriteAt([]byte("\n"+`{"type":"stop"}`+"\n"+`{"type":"commit"}`+"\n{\"torn"), hole)
	must(t, err)
	must(t, f.Close())
	var last []string
	_, err = Tail(path, func(_ int64, line []byte) bool {
		last = append(last, string(line))
		return len(last) < 2
	})
	if err != nil || !slices.Equal(last, []string{`{"type":"commit"}`, `{"type":"stop"}`}) {
		t.Errorf("%q %v", last, err)
	}
}

// Lines of a file that is truncated during a read are not mixed with those of the new file.
func TestTailOfAFileThatIsCut(t *testing.T) {
	dir := t.TempDir()
	lines := func(name string) string { return strings.Repeat(fmt.Sprintf("{\"of\":%q}\n", name), 3*tailBlock) }
	write(t, filepath.Join(dir, "other"), lines("other"))
	write(t, filepath.Join(dir, "cut"), lines("cut"))
	_, err := Tail(filepath.Join(dir, "other"), func(int64, []byte) bool { return true })
	must(t, err)
	_, err = Tail(filepath.Join(dir, "cut"), func(_ int64, line []byte) bool {
		must(t, os.Truncate(filepath.Join(dir, "cut"), 0))
		if string(line) != `{"of":"cut"}` {
			t.Fatalf("of another file: %s", line)
		}
		return true
	})
	must(t, err)
}

func TestIsObjectAgreesWithEncodingJSON(t *testing.T) {
	for _, line := range []string{`{}`, `{"a":1}`, `{"a":1,}`, `{"a":01}`, "{\"a\":\"\x01\"}", "{\"a\":\"\xff\"}", `{"a":"\x"}`, `{"a":"\u12"}`, `{"a":+1}`,
		`{"a":1.}`, `{"a":.5}`, `{"a":1e}`, `{"a":-}`, `{'a':1}`, `{"a":NaN}`, `{"a":tru}`, `{} x`, `{`, `}`, `{"a"}`, `{"a":}`, `{,}`, `{"a":1 "b":2}`, `{"a":[1,]}`,
		`{a:1}`, `{"a":1}{}`, `{"a":"x}`, `{"a":"\u12g4"}`, `{"a":[1}`} {
		if IsObject([]byte(line)) != json.Valid([]byte(line)) {
			t.Errorf("%s: %v", line, !json.Valid([]byte(line)))
		}
	}
}

func FuzzScan(f *testing.F) {
	f.Add([]byte("{}\n5\n{\"a\":\"b\"}\n{\"torn"))
	f.Add([]byte("\r\n{}\r\n\x00{}"))
	path := filepath.Join(f.TempDir(), "x.jsonl")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		lines, _, end, skipped := scanned(t, path, 0)
		var want []string
		wantSkipped := 0
		parts := bytes.Split(data, []byte{'\n'})
		for i, part := range parts {
			part = bytes.TrimSpace(part)
			switch {
			case len(part) > 0 && part[0] == '{' && json.Valid(part):
				want = append(want, string(part))
			case len(part) > 0 && i < len(parts)-1:
				wantSkipped++
			}
		}
		if !slices.Equal(lines, want) || skipped != wantSkipped {
			t.Fatalf("%q, %d skipped; want %q, %d", lines, skipped, want, wantSkipped)
		}
		if end > int64(len(data)) || end > 0 && end < int64(len(data)) && data[end-1] != '\n' {
			t.Fatalf("ended at %d of %d", end, len(data))
		}
	})
}

func FuzzRepair(f *testing.F) {
	f.Add([]byte("{}\n{\"torn"))
	f.Add([]byte("{}\n{\"a\":1}"))
	f.Add([]byte("\x00\x00"))
	path := filepath.Join(f.TempDir(), "x.jsonl")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		before, _, _, _ := scanned(t, path, 0)
		a, repair, err := Open(path)
		must(t, err)
		must(t, a.Add([]byte("{\"new\":1}\n"), false))
		must(t, a.Close())
		after, _, end, _ := scanned(t, path, 0)
		if !slices.Equal(after, append(before, `{"new":1}`)) {
			t.Fatalf("%q became %q", before, after)
		}
		size := int64(len(data)) - repair.CutBytes + int64(len("{\"new\":1}\n"))
		if repair.AddedNewline {
			size++
		}
		if end != size {
			t.Fatalf("%d bytes, want %d after %+v", end, size, repair)
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}
