package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/verify"
)

// verified is an idle session of three tasks with its original files.
type verified struct {
	*place
	s     *session.Session
	files map[string]string
	tip   string
}

// newVerified creates a session: T-001 is accepted at once, T-002 after a rejection, T-003 fails and a resume
// completes it.
func newVerified(t *testing.T) *verified {
	p := newPlace(t)
	does := func(name string) scripted.Step {
		step := calls("write_file", map[string]any{"path": name, "content": name + "\n"})
		step.Tools = append(step.Tools, calls("submit_case", map[string]any{"summary": "wrote " + name}).Tools...)
		return step
	}
	seed := map[string]any{"tldr": "three"}
	var entries []any
	tests := map[string]string{}
	for i := range 3 {
		id := fmt.Sprintf("T-00%d", i+1)
		entries = append(entries, map[string]any{"id": id, "title": "Do " + id, "description": "do",
			"acceptance_criteria": []string{"it is done"}})
		tests[fmt.Sprintf("tests/t00%d_test.txt", i+1)] = id + "\n"
	}
	seed["prd_entries"], seed["test_files"] = entries, tests
	verdict := func(v map[string]any) scripted.Step { return calls("submit_verdict", v) }
	accept := verdict(map[string]any{"verdict": "accept"})
	accept.Repeat = -1
	failing := calls("write_file", map[string]any{"path": "c", "content": "half\n"})
	p.model(&scripted.Script{
		Interview: []scripted.Step{calls("write_seed", seed)},
		Worker:    []scripted.Step{does("a"), does("b"), does("b2"), failing, failing, does("c")},
		Evaluator: []scripted.Step{
			{Tools: accept.Tools},
			verdict(map[string]any{"verdict": "reject", "rejection_category": "half_finished", "concern": "more",
				"next_step": "b2"}),
			accept,
		},
	})
	for _, c := range []struct {
		code int
		line string
	}{
		{0, "git tilth prep --brief x </dev/null"}, {1, "git tilth run --max-iterations 2"}, {0, "git tilth resume"},
	} {
		if out, code := p.try("sh", "-c", c.line); code != c.code {
			t.Fatalf("%s: %d\n%s", c.line, code, out)
		}
	}
	v := &verified{place: p, s: p.newest(), files: map[string]string{}}
	v.tip = p.git("rev-parse", v.s.Branch())
	for _, name := range []string{"events.jsonl", "prd.json", "checkpoint.json", "ledger/T-001.jsonl",
		"ledger/T-002.jsonl"} {
		data, err := os.ReadFile(v.s.Path(name))
		if err != nil {
			t.Fatal(err)
		}
		v.files[name] = string(data)
	}
	return v
}

// restore puts everything back.
func (v *verified) restore() {
	for name, text := range v.files {
		v.put(name, text)
	}
	v.git("update-ref", "refs/heads/"+v.s.Branch(), v.tip)
}

func (v *verified) put(name, text string) {
	v.t.Helper()
	if err := os.WriteFile(v.s.Path(name), []byte(text), 0o600); err != nil {
		v.t.Fatal(err)
	}
}

// lines changes the lines of a file.
func (v *verified) lines(name string, change func([]string) []string) {
	all := strings.SplitAfter(strings.TrimSuffix(v.files[name], "\n"), "\n")
	all[len(all)-1] += "\n"
	v.put(name, strings.Join(change(slices.Clone(all)), ""))
}

// replace changes the last occurrence of a text in a file.
func (v *verified) replace(name, old, now string) {
	v.t.Helper()
	i := strings.LastIndex(v.files[name], old)
	if i < 0 {
		v.t.Fatalf("%s does not hold %q", name, old)
	}
	v.put(name, v.files[name][:i]+now+v.files[name][i+len(old):])
}

// renamed changes the last commit's recorded id.
func (v *verified) renamed(sha string) {
	v.put("events.jsonl", strings.ReplaceAll(v.files["events.jsonl"], v.tip, sha))
}

// recommit repeats the last n commits of the branch, each from its parts: tree, parent, message.
func (v *verified) recommit(n int, change func(i int, tree, message string) (string, string)) string {
	parent := v.git("rev-parse", fmt.Sprintf("%s~%d", v.tip, n))
	for i := range n {
		old := fmt.Sprintf("%s~%d", v.tip, n-1-i)
		tree, message := change(i, v.git("rev-parse", old+"^{tree}"), v.git("log", "-1", "--format=%B", old)+"\n")
		v.write("../message", message)
		parent = v.git("commit-tree", "-p", parent, "-F", "../message", tree)
	}
	v.git("update-ref", "refs/heads/"+v.s.Branch(), parent)
	return parent
}

// onTop commits a file manually on the branch.
func (v *verified) onTop(file, message string) string {
	dir := v.s.Workspace()
	v.git("-C", dir, "reset", "-q", "--hard")
	v.write(filepath.Join("..", "sessions", v.s.ID, "workspace", file), "by hand\n")
	v.git("-C", dir, "add", file)
	v.git("-C", dir, "commit", "-q", "-m", message)
	return v.git("-C", dir, "rev-parse", "HEAD")
}

func (v *verified) verify() (r verify.Result, code int) {
	v.t.Helper()
	out, code := v.try("sh", "-c", "git tilth verify --json "+v.s.ID+" 2>/dev/null")
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		v.t.Fatalf("%v in %q", err, out)
	}
	return r, code
}

func (v *verified) trailer(key string) string {
	return v.git("log", "-1", "--format=%(trailers:key="+key+",valueonly)", v.tip)
}

// planted are possible manipulations. Each is found, and named by line or commit in the first difference.
var planted = []struct {
	name  string
	plant func(v *verified)
	first string
}{
	{"a byte of an early event", func(v *verified) {
		v.lines("events.jsonl", func(l []string) []string { l[3] = strings.Replace(l[3], "2", "3", 1); return l })
	}, `^events.jsonl:1, commit \w{10}: the record was changed from this line on`},
	{"a byte of an event of the second task", func(v *verified) {
		v.lines("events.jsonl", func(l []string) []string {
			i := slices.IndexFunc(l, func(s string) bool { return strings.Contains(s, `"reject"`) })
			l[i] = strings.Replace(l[i], "more", "lore", 1)
			return l
		})
	}, `^events.jsonl:\d\d, commit \w{10}: the record was changed from this line on`},
	{"a short event less", func(v *verified) {
		v.lines("events.jsonl", func(l []string) []string {
			i := slices.IndexFunc(l, func(s string) bool { return strings.Contains(s, `"iter":1`) && len(s) < 300 })
			return slices.Delete(l, i, i+1)
		})
	}, `^events.jsonl:\d+, commit \w{10}: the record was changed from this line on`},
	{"an event less, longer than those between the commit and what its trailer counts", func(v *verified) {
		v.lines("events.jsonl", func(l []string) []string {
			i := slices.IndexFunc(l, func(s string) bool { return strings.Contains(s, `"role":"worker"`) })
			return slices.Delete(l, i, i+1)
		})
	}, `^events.jsonl:\d+, commit \w{10}: the record before it is shorter than its trailer says`},
	{"an event more", func(v *verified) {
		v.lines("events.jsonl", func(l []string) []string { return slices.Insert(l, 9, l[8]) })
	}, `^events.jsonl:\d+, commit \w{10}: the record was changed from this line on`},
	{"two events in another order", func(v *verified) {
		v.lines("events.jsonl", func(l []string) []string { l[8], l[9] = l[9], l[8]; return l })
	}, `^events.jsonl:\d+, commit \w{10}: the record was changed from this line on`},
	{"half of the record", func(v *verified) {
		v.lines("events.jsonl", func(l []string) []string { return l[:len(l)/2] })
	}, `^commit \w{10}: it has the session's trailers, but is not in the record`},
	{"all of the record", func(v *verified) { v.put("events.jsonl", "") },
		`^events.jsonl: the record does not name the seed's commit, but tasks were started`},
	{"the record's file", func(v *verified) {
		if err := os.Remove(v.s.Path("events.jsonl")); err != nil {
			v.t.Fatal(err)
		}
	}, `^events.jsonl: the record does not name the seed's commit, but tasks were started`},
	{"all of the record, of a session that failed", func(v *verified) {
		v.replace("checkpoint.json", `"all_done"`, `"failed"`)
		v.put("events.jsonl", "")
	}, `^events.jsonl: the record does not name the seed's commit, but tasks were started`},
	{"all of the record, and what the files say of it", func(v *verified) {
		v.replace("checkpoint.json", `"all_done"`, `"running"`)
		v.put("prd.json", strings.ReplaceAll(v.files["prd.json"], `"done"`, `"pending"`))
		v.put("events.jsonl", "")
	}, `^events.jsonl: the record does not name the seed's commit, but tasks were started`},
	{"another commit on record", func(v *verified) {
		v.renamed(strings.Repeat("0", len(v.tip)))
	}, `^events.jsonl:\d+, commit 0{10}: the commit of T-003 is not on the branch`},
	{"the last commit not on record", func(v *verified) {
		v.lines("events.jsonl", func(l []string) []string {
			return slices.DeleteFunc(l, func(s string) bool { return strings.Contains(s, `"sha":"`+v.tip) })
		})
	}, `T-003 is done, but pending in the record|is not in the record`},
	{"the last commit on record twice", func(v *verified) {
		v.lines("events.jsonl", func(l []string) []string {
			i := slices.IndexFunc(l, func(s string) bool { return strings.Contains(s, `"sha":"`+v.tip) })
			return slices.Insert(l, i, l[i])
		})
	}, `^events.jsonl:\d+: the record names this commit twice`},
	{"a word of a ledger", func(v *verified) { v.replace("ledger/T-002.jsonl", "more", "lore") },
		`^ledger/T-002.jsonl:1: it differs from the record`},
	{"a verdict of a ledger", func(v *verified) { v.replace("ledger/T-002.jsonl", `"reject"`, `"accept"`) },
		`^ledger/T-002.jsonl:1: it differs from`},
	{"a case in a ledger", func(v *verified) { v.replace("ledger/T-001.jsonl", "wrote a", "wrote z") },
		`^ledger/T-001.jsonl:1: it differs from`},
	{"a ledger's line less", func(v *verified) {
		v.lines("ledger/T-002.jsonl", func(l []string) []string { return l[1:] })
	}, `^ledger/T-002.jsonl:1: it differs from`},
	{"a ledger's last line less", func(v *verified) {
		v.lines("ledger/T-002.jsonl", func(l []string) []string { return l[:1] })
	}, `^ledger/T-002.jsonl:2: the record has 2 entries, this ledger 1`},
	{"a ledger's line more", func(v *verified) {
		v.lines("ledger/T-001.jsonl", func(l []string) []string { return append(l, l[0]) })
	}, `^ledger/T-001.jsonl:2: the record has no such entry`},
	{"a status", func(v *verified) { v.replace("prd.json", `"done"`, `"pending"`) },
		`^prd.json: T-003 is pending, but done in the record`},
	{"another status", func(v *verified) { v.replace("prd.json", `"done"`, `"failed"`) },
		`^prd.json: T-003 is failed, but done in the record`},
	{"a task", func(v *verified) { v.replace("prd.json", `"T-003"`, `"T-004"`) },
		`^prd.json: T-004 is done, but pending in the record`},
	{"the last commit's message", func(v *verified) {
		v.recommit(1, func(_ int, tree, m string) (string, string) {
			return tree, strings.Replace(m, "wrote", "writes", 1)
		})
	}, `^events.jsonl:\d+, commit \w{10}: the commit of T-003 is not on the branch`},
	{"the last commit's tree", func(v *verified) {
		v.recommit(1, func(_ int, _, m string) (string, string) { return v.git("rev-parse", v.tip+"~1^{tree}"), m })
	}, `^events.jsonl:\d+, commit \w{10}: the commit of T-003 is not on the branch`},
	{"the last commit's tree, and the record of it", func(v *verified) {
		sha := v.recommit(1, func(_ int, _, m string) (string, string) {
			return v.git("rev-parse", v.tip+"~1^{tree}"), m
		})
		v.renamed(sha)
	}, `^events.jsonl:\d+, commit \w{10}: no accepting verdict for T-003 names its tree`},
	{"the last commit's parent, and the record of it", func(v *verified) {
		tree, m := v.git("rev-parse", v.tip+"^{tree}"), v.git("log", "-1", "--format=%B", v.tip)
		sha := v.git("commit-tree", "-p", v.tip+"~2", "-m", m, tree)
		v.git("update-ref", "refs/heads/"+v.s.Branch(), sha)
		v.renamed(sha)
	}, `^events.jsonl:\d+, commit \w{10}: the commit of T-002 is not on the branch`},
	{"the last commit's trailer, and the record of it", func(v *verified) {
		sha := v.recommit(1, func(_ int, tree, m string) (string, string) {
			return tree, strings.Replace(m, "Tilth-Record: ", "Tilth-Record: 1", 1)
		})
		v.renamed(sha)
	}, `^events.jsonl:\d+, commit \w{10}: the record before it is shorter than its trailer says`},
	{"no trailer, and the record of it", func(v *verified) {
		sha := v.recommit(1, func(_ int, tree, m string) (string, string) {
			return tree, strings.Replace(m, "\nTilth-Record: "+v.trailer("Tilth-Record"), "", 1)
		})
		v.renamed(sha)
	}, `^events.jsonl:\d+, commit \w{10}: it has no Tilth-Record trailer`},
	{"a trailer that is none, and the record of it", func(v *verified) {
		sha := v.recommit(1, func(_ int, tree, m string) (string, string) {
			return tree, strings.Replace(m, "Tilth-Record: ", "Tilth-Record: all of ", 1)
		})
		v.renamed(sha)
	}, `^events.jsonl:\d+, commit \w{10}: its trailer Tilth-Record is not a length and a hash`},
	{"a message in the middle", func(v *verified) {
		v.recommit(2, func(i int, tree, m string) (string, string) {
			if i == 0 {
				m = strings.Replace(m, "wrote", "writes", 1)
			}
			return tree, m
		})
	}, `^events.jsonl:\d+, commit \w{10}: the commit of T-002 is not on the branch`},
	{"the tasks' commits in another order", func(v *verified) {
		v.recommit(2, func(i int, tree, _ string) (string, string) {
			return tree, v.git("log", "-1", "--format=%B", fmt.Sprintf("%s~%d", v.tip, i)) + "\n"
		})
	}, `^events.jsonl:\d+, commit \w{10}: the commit of T-002 is not on the branch`},
	{"a commit less", func(v *verified) { v.git("update-ref", "refs/heads/"+v.s.Branch(), v.tip+"~1") },
		`^events.jsonl:\d+, commit \w{10}: the commit of T-003 is not on the branch`},
	{"the seed's message", func(v *verified) {
		v.recommit(4, func(i int, tree, m string) (string, string) {
			if i == 0 {
				m = strings.Replace(m, "3 task", "2 task", 1)
			}
			return tree, m
		})
	}, `^events.jsonl:\d+, commit \w{10}: the seed's commit is not on the branch`},
	{"a commit with forged trailers on top", func(v *verified) {
		v.onTop("d", "T-003: Do T-003\n\nmore\n\nTilth-Session: "+v.s.ID+"\nTilth-Task: T-003\nTilth-Record: "+
			v.trailer("Tilth-Record"))
	}, `^commit \w{10}: it has the session's trailers, but is not in the record, which names \w{10} for T-003`},
	{"a forged placeholder on top", func(v *verified) {
		v.onTop("d", "FAILED (no_case): T-003 x\n\nTilth-Session: "+v.s.ID+"\nTilth-Task: T-003\nTilth-Failed: no_case")
	}, `^commit \w{10}: it has the session's trailers, but is not in the record`},
	{"a test of the seed by hand", func(v *verified) { v.onTop("tests/t002_test.txt", "mine") },
		`^commit \w{10}: it changes the seed's test tests/t002_test.txt, and no accepted task does`},
	{"no branch", func(v *verified) { v.git("update-ref", "-d", "refs/heads/"+v.s.Branch()) },
		`^the branch session/\S+ is gone`},
}

func TestVerifyFindsWhatWasChanged(t *testing.T) {
	v := newVerified(t)
	if r, code := v.verify(); code != 0 || len(r.Differences) > 0 || len(r.Notes) > 0 || !r.Anchored ||
		len(r.Commits) != 4 {
		t.Fatalf("as it is: %d %+v", code, r)
	}
	for _, c := range planted {
		t.Run(c.name, func(t *testing.T) {
			v.place.t = t
			defer v.restore()
			c.plant(v)
			r, code := v.verify()
			if code != 1 || len(r.Differences) == 0 ||
				!regexp.MustCompile(c.first).MatchString(r.Differences[0].String()) {
				t.Errorf("exit code %d\n%s\n%v", code, r.Differences, r.Notes)
			}
		})
	}
	v.place.t = t
	sha := v.onTop("d", "tidy up")
	r, code := v.verify()
	if code != 0 || len(r.Differences) > 0 || !slices.Contains(r.Notes, sha[:10]+" is by another author: tidy up") {
		t.Errorf("a person's commit: %d %+v", code, r)
	}
}
