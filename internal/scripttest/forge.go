package scripttest

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// stubForge is GitHub's API for the project team/thing, on a unix socket that the real gh uses.
type stubForge struct {
	mu    sync.Mutex
	file  string // its state, which a script may replace between two commands
	heads string // the bare repository with the heads of pull requests
	owner string // team, or me with a fork
	calls string // a line for each call
}

// forgeState is the file of a stubForge.
type forgeState struct {
	Push    bool              `json:"push"`
	Limited bool              `json:"limited"`
	Writers []string          `json:"writers"`
	Issues  map[string]any    `json:"issues"` // by path below the project
	Pulls   []map[string]any  `json:"pulls"`
	Threads []map[string]any  `json:"threads"`
	Runs    []any             `json:"check_runs"`
	Jobs    map[string]any    `json:"jobs"`
	Logs    map[string]string `json:"logs"`
}

// fakeForge serves the state in FILE as GitHub's API at the host github.localhost, of the bare repository REPO. With
// fork, REPO is the user's fork me/thing of team/thing.
func fakeForge(ts *testscript.TestScript, _ bool, args []string) {
	need(ts, args, 2, "fakeforge FILE REPO [fork]")
	dir, err := os.MkdirTemp("", "gh") // a socket's path must be short
	ts.Check(err)
	f := &stubForge{file: ts.MkAbs(args[0]), heads: ts.MkAbs(args[1]), owner: "team", calls: ts.MkAbs("../forge.log")}
	if len(args) > 2 {
		f.owner = "me"
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "s"))
	ts.Check(err)
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: f}}
	server.Start()
	ts.Defer(func() { server.Close(); os.RemoveAll(dir) })
	config := "http_unix_socket: " + filepath.Join(dir, "s") + "\n"
	ts.Check(os.WriteFile(filepath.Join(dir, "config.yml"), []byte(config), 0o600))
	ts.Setenv("GH_CONFIG_DIR", dir)
	ts.Setenv("GH_TOKEN", "token-of-the-stub")
}

var pullPath = regexp.MustCompile(`^pulls/(\d+)(?:/comments/(\d+)/replies)?$`)

func (f *stubForge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sent, _ := io.ReadAll(r.Body)
	if log, err := os.OpenFile(f.calls, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		fmt.Fprintf(log, "%s %s %s\n", r.Method, r.URL.Path, sent)
		log.Close()
	}
	var s forgeState
	data, err := os.ReadFile(f.file)
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	code, answer := http.StatusInternalServerError, any(map[string]any{"message": fmt.Sprint(err)})
	if err == nil {
		code, answer = f.answer(r, sent, &s)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	if text, is := answer.(string); is {
		fmt.Fprint(w, text)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (f *stubForge) answer(r *http.Request, sent []byte, s *forgeState) (int, any) {
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/api/v3"), "/")
	body := map[string]any{}
	_ = json.Unmarshal(sent, &body)
	missing := map[string]any{"message": "Not Found"}
	in, isProject := strings.CutPrefix(path, "repos/team/thing")
	in = strings.TrimPrefix(in, "/")
	switch {
	case s.Limited:
		return http.StatusForbidden, map[string]any{"message": "API rate limit exceeded for user ID 1."}
	case path == "user":
		return http.StatusOK, map[string]any{"login": "me"}
	case path == "graphql":
		return http.StatusOK, map[string]any{"data": map[string]any{"repository": map[string]any{
			"pullRequest": map[string]any{
				"reviewThreads": map[string]any{"nodes": threadsOf(s, body),
					"pageInfo": map[string]any{"hasNextPage": false}}}}}}
	case path == "repos/me/thing" && f.owner == "me":
		return http.StatusOK, map[string]any{"full_name": "me/thing", "default_branch": "old",
			"permissions": map[string]any{"push": s.Push}, "parent": map[string]any{"full_name": "team/thing"}}
	case !isProject:
		return http.StatusNotFound, missing
	case in == "":
		name := "main"
		if exec.Command("git", "--git-dir="+f.heads, "rev-parse", "refs/heads/trunk").Run() == nil {
			name = "trunk"
		}
		return http.StatusOK, map[string]any{"full_name": "team/thing", "default_branch": name,
			"permissions": map[string]any{"push": s.Push}}
	case strings.HasPrefix(in, "collaborators/") && f.owner != "team":
		return http.StatusForbidden, map[string]any{"message": "Must have push access to view collaborator permission."}
	case strings.HasPrefix(in, "collaborators/"):
		login := strings.Split(in, "/")[1]
		for _, writer := range s.Writers {
			if writer == login {
				return http.StatusOK, map[string]any{"permission": "write"}
			}
		}
		return http.StatusOK, map[string]any{"permission": "read"}
	case strings.HasPrefix(in, "issues"):
		if got, there := s.Issues[in]; there {
			return http.StatusOK, got
		}
	case in == "pulls" && r.Method == "POST":
		head := strings.TrimPrefix(fmt.Sprint(body["head"]), f.owner+":")
		pull := map[string]any{"number": 34 + len(s.Pulls), "state": "open", "body": body["body"],
			"title": body["title"], "html_url": fmt.Sprintf("https://github.localhost/team/thing/pull/%d", 34+len(s.Pulls)),
			"base": map[string]any{"ref": body["base"]}, "head": map[string]any{"ref": head}}
		s.Pulls = append(s.Pulls, f.withHead(pull))
		f.save(s)
		return http.StatusCreated, pull
	case in == "pulls":
		list := []any{}
		for _, pull := range s.Pulls {
			if ref := pull["head"].(map[string]any)["ref"]; r.URL.Query().Get("head") == f.owner+":"+ref.(string) {
				list = append(list, f.withHead(pull))
			}
		}
		return http.StatusOK, list
	case pullPath.MatchString(in):
		m := pullPath.FindStringSubmatch(in)
		for _, pull := range s.Pulls {
			if fmt.Sprint(pull["number"]) != m[1] {
				continue
			}
			if m[2] != "" {
				f.reply(s, m[2], body["body"])
				return http.StatusCreated, map[string]any{"id": 1}
			}
			for key, value := range body {
				if pull[key] = value; key == "base" {
					pull[key] = map[string]any{"ref": value}
				}
			}
			f.save(s)
			return http.StatusOK, f.withHead(pull)
		}
	case strings.HasSuffix(in, "/check-runs"):
		return http.StatusOK, map[string]any{"check_runs": s.Runs}
	case strings.HasSuffix(in, "/status"):
		return http.StatusOK, map[string]any{"statuses": []any{}}
	case strings.HasSuffix(in, "/logs"):
		return http.StatusOK, s.Logs[strings.Split(in, "/")[2]]
	case strings.HasPrefix(in, "actions/jobs/"):
		if got, there := s.Jobs[strings.TrimPrefix(in, "actions/jobs/")]; there {
			return http.StatusOK, got
		}
	}
	return http.StatusNotFound, missing
}

// threadsOf returns the threads of the pull request that a query names. A thread without a pull request belongs to all
// of them.
func threadsOf(s *forgeState, query map[string]any) []map[string]any {
	of := []map[string]any{}
	variables, _ := query["variables"].(map[string]any)
	for _, t := range s.Threads {
		if t["pull"] == nil || t["pull"] == variables["number"] {
			of = append(of, t)
		}
	}
	return of
}

// withHead returns a pull request with the commit that its branch is at in the repository.
func (f *stubForge) withHead(pull map[string]any) map[string]any {
	head := pull["head"].(map[string]any)
	out, err := exec.Command("git", "--git-dir="+f.heads, "rev-parse",
		fmt.Sprintf("refs/heads/%s", head["ref"])).Output()
	if err == nil {
		head["sha"] = strings.TrimSpace(string(out))
	}
	return pull
}

// reply adds an answer of the user to the thread of a comment.
func (f *stubForge) reply(s *forgeState, comment string, body any) {
	for _, t := range s.Threads {
		comments := t["comments"].(map[string]any)
		nodes := comments["nodes"].([]any)
		if fmt.Sprint(nodes[0].(map[string]any)["databaseId"]) == comment {
			comments["nodes"] = append(nodes, map[string]any{"id": fmt.Sprintf("R%d", len(nodes)), "body": body,
				"databaseId": 900 + len(nodes), "author": map[string]any{"login": "me"}})
		}
	}
	f.save(s)
}

func (f *stubForge) save(s *forgeState) {
	data, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = os.WriteFile(f.file, data, 0o600)
	}
	if err != nil {
		panic(err)
	}
}
