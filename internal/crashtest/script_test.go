//go:build linux && (amd64 || arm64)

package crashtest

import "github.com/git-tilth/git-tilth/internal/scripttest/scripted"

// answers is a model without memory. An answer depends only on the request, so it works after any resume. T-001 is
// accepted at once; its worker adds an ignore rule and creates ignored files. T-002 makes its own commits, is rejected
// once and fixed. The repository's commit hook changes T-003, which is judged again.
const answers = `{
 "worker": [
  {"when_last": "# Your task: T-001", "repeat": -1, "tools": [
   {"name": "write_file", "args": {"path": "alpha.txt", "content": "alpha\n"}},
   {"name": "write_file", "args": {"path": ".gitignore", "content": "*.ignored\ncache/\n"}},
   {"name": "bash", "args": {"command": "mkdir -p cache && echo 1 > cache/data && echo 2 > kept.ignored"}},
   {"name": "submit_case", "args": {"summary": "wrote alpha"}}]},
  {"when_last": "# Your task: T-002", "repeat": -1, "tools": [
   {"name": "write_file", "args": {"path": "beta.txt", "content": "beta = 1\n"}},
   {"name": "bash", "args": {"command": "git add beta.txt && git commit -q -m wip"}},
   {"name": "submit_case", "args": {"summary": "wrote beta"}}]},
  {"when_last": "# Your task: T-003", "repeat": -1, "tools": [
   {"name": "write_file", "args": {"path": "gamma.txt", "content": "RAW\n"}},
   {"name": "submit_case", "args": {"summary": "wrote gamma"}}]},
  {"when": "# Your task: T-001", "repeat": -1, "tools": [
   {"name": "write_file", "args": {"path": "alpha.txt", "content": "alpha\n"}},
   {"name": "write_file", "args": {"path": ".gitignore", "content": "*.ignored\ncache/\n"}},
   {"name": "submit_case", "args": {"summary": "wrote alpha again"}}]},
  {"when": "# Your task: T-002", "repeat": -1, "tools": [
   {"name": "write_file", "args": {"path": "beta.txt", "content": "beta = 2\n"}},
   {"name": "submit_case", "args": {"summary": "mended beta"}}]},
  {"when": "# Your task: T-003", "repeat": -1, "tools": [
   {"name": "write_file", "args": {"path": "gamma.txt", "content": "RAW\n"}},
   {"name": "submit_case", "args": {"summary": "wrote gamma again"}}]}
 ],
 "evaluator": [
  {"when": "+beta = 1", "repeat": -1, "tools": [{"name": "submit_verdict", "args": {
   "verdict": "reject", "rejection_category": "acceptance_gap", "concern": "beta is too small", "evidence": ["beta.txt"], "next_step": "make it larger"}}]},
  {"repeat": -1, "tools": [{"name": "submit_verdict", "args": {"verdict": "accept"}}]}
 ],
 "self_improve": [
  {"when": "T-001", "repeat": -1, "content": "{\"propose\": \"yes\", \"learning\": \"alpha comes first\"}"},
  {"repeat": -1, "content": "{\"propose\": \"no\", \"learning\": \"\"}"}
 ]
}`

// contents are the files of each task's commit, with their possible contents. A killed hook leaves RAW.
var contents = map[string]map[string][]string{
	"T-001": {"alpha.txt": {"alpha\n"}, ".gitignore": {"*.ignored\ncache/\n"}},
	"T-002": {"beta.txt": {"beta = 2\n"}},
	"T-003": {"gamma.txt": {"COOKED\n", "RAW\n"}},
}

var taskIDs = []string{"T-001", "T-002", "T-003"}

func startModel() (*scripted.Server, error) {
	script, err := scripted.Parse([]byte(answers))
	if err != nil {
		return nil, err
	}
	return scripted.Start(script, scripted.WithoutBodies())
}
