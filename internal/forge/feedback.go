package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/session"
)

// Comment is a comment in an issue or a thread.
type Comment struct {
	ID, Login, Body string
	Writes          bool // by an author with write access
	reply           bool // by this program
}

// Thread is an unresolved review thread.
type Thread struct {
	ID, Path string
	Line     int64
	Comments []Comment
	replyTo  string
}

// Check is a failed check of a commit. Rig is the reason if the change did not cause the failure, else "".
type Check struct{ ID, Name, Rig, Log string }

const threadsQuery = `query($owner:String!,$name:String!,$number:Int!,$after:String){repository(owner:$owner,name:$name){
pullRequest(number:$number){reviewThreads(first:50,after:$after){pageInfo{hasNextPage endCursor}
nodes{id isResolved path line comments(first:100){nodes{id databaseId body author{login}}}}}}}}`

// Threads returns the unresolved threads of a request with a comment by an author with write access.
func (f *Forge) Threads(ctx context.Context, number int64) (threads []Thread, err error) {
	var nodes []gjson.Result
	if f.isLab() {
		nodes, err = f.all(ctx, fmt.Sprintf("%s/%d/discussions", f.requests(), number), "")
	} else {
		nodes, err = f.graphThreads(ctx, number)
	}
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		t := Thread{ID: n.Get("id").String(), Line: first(n, "line", "notes.0.position.new_line").Int(),
			Path: first(n, "path", "notes.0.position.new_path", "notes.0.position.old_path").String()}
		comments := first(n, "comments.nodes", "notes").Array()
		open := func(c gjson.Result) bool { return c.Get("resolvable").Bool() && !c.Get("resolved").Bool() }
		if n.Get("isResolved").Bool() || f.isLab() && !slices.ContainsFunc(comments, open) || t.ID == "" {
			continue
		}
		if t.Comments, err = f.comments(ctx, comments); err != nil {
			return nil, err
		}
		if len(comments) > 0 {
			t.replyTo = comments[0].Get("databaseId").String()
		}
		if t.Last() != "" {
			threads = append(threads, t)
		}
	}
	return threads, nil
}

// Look reads the threads and failed checks of a request, and counts them in it.
func (f *Forge) Look(ctx context.Context, r *session.Request) (threads []Thread, checks []Check, err error) {
	if threads, err = f.Threads(ctx, r.Number); err == nil {
		checks, err = f.Checks(ctx, r.Number, r.Head)
	}
	r.Threads, r.Failed = len(threads), 0
	for _, c := range checks {
		if c.Rig == "" {
			r.Failed++
		}
	}
	return threads, checks, err
}

func (f *Forge) graphThreads(ctx context.Context, number int64) (nodes []gjson.Result, err error) {
	owner, name, _ := strings.Cut(f.Target, "/")
	var after any
	for {
		got, err := f.call(ctx, "POST", "graphql", map[string]any{"query": threadsQuery,
			"variables": map[string]any{"owner": owner, "name": name, "number": number, "after": after}})
		if err != nil {
			return nil, err
		}
		threads := got.Get("data.repository.pullRequest.reviewThreads")
		if !threads.Exists() {
			return nil, ErrUnknown
		}
		nodes = append(nodes, threads.Get("nodes").Array()...)
		next := threads.Get("pageInfo.endCursor").String()
		if !threads.Get("pageInfo.hasNextPage").Bool() || next == "" {
			return nodes, nil
		}
		after = next
	}
}

// comments reads comments with whether their authors have write access. Notes of the system are left out.
func (f *Forge) comments(ctx context.Context, list []gjson.Result) (out []Comment, err error) {
	for _, c := range list {
		if c.Get("system").Bool() {
			continue
		}
		one := Comment{ID: c.Get("id").String(), Body: c.Get("body").String(),
			Login: first(c, "author.login", "user.login", "author.username").String()}
		if one.Writes, err = f.Writes(ctx, one.Login, c.Get("author.id").String()); err != nil {
			return nil, err
		}
		one.reply = one.Login == f.Login && strings.Contains(one.Body, replyMark)
		one.Writes = one.Writes && !one.reply
		out = append(out, one)
	}
	return out, nil
}

// replyMark ends each answer of this program in a thread. It counts only in a comment of the user's login.
const replyMark = "<!-- git-tilth -->"

// lastOf returns the index of the last comment of a kind, -1 for none.
func (t Thread) lastOf(is func(Comment) bool) int {
	for i, c := range slices.Backward(t.Comments) {
		if is(c) {
			return i
		}
	}
	return -1
}

func isReply(c Comment) bool { return c.reply }

func writes(c Comment) bool { return c.Writes }

// Last returns the id of the last comment by an author with write access, or "".
func (t Thread) Last() string {
	if i := t.lastOf(writes); i >= 0 {
		return t.Comments[i].ID
	}
	return ""
}

// Reopened reports whether an author with write access wrote after this program's answer.
func (t Thread) Reopened() bool {
	reply := t.lastOf(isReply)
	return reply >= 0 && t.lastOf(writes) > reply
}

// Answered reports whether this program answered a thread after the comment of a task's source.
func (t Thread) Answered(source string) bool {
	return t.lastOf(isReply) > t.lastOf(func(c Comment) bool { return strings.Contains(source, " comment "+c.ID+" ") })
}

// Reply answers a thread with a commit.
func (f *Forge) Reply(ctx context.Context, number int64, t Thread, commit string) error {
	body := map[string]any{"body": "Done in " + commit + ".\n\n" + replyMark}
	path := fmt.Sprintf("%s/%d/comments/%s/replies", f.requests(), number, t.replyTo)
	if f.isLab() {
		path = fmt.Sprintf("%s/%d/discussions/%s/notes", f.requests(), number, t.ID)
	}
	_, err := f.call(ctx, "POST", path, body)
	return err
}

// Checks returns the failed checks of a commit, with the log of each that is the change's fault.
func (f *Forge) Checks(ctx context.Context, number int64, commit string) (failed []Check, err error) {
	if f.isLab() {
		return f.jobs(ctx, number, commit)
	}
	at := f.project(f.Target) + "/commits/" + commit
	runs, err := f.all(ctx, at+"/check-runs?filter=latest", "check_runs")
	if err != nil {
		return nil, err
	}
	for _, run := range runs {
		c := Check{ID: run.Get("id").String(), Name: run.Get("name").String()}
		switch as := run.Get("conclusion").String(); as {
		case "failure", "timed_out":
			if err := f.job(ctx, &c, as); err != nil {
				return nil, err
			}
			c.Log = cmp.Or(c.Log, strings.TrimSpace(run.Get("output.title").String()+"\n"+
				run.Get("output.summary").String()+"\n"+failingPart(run.Get("output.text").String())))
		case "cancelled", "startup_failure", "stale":
			c.Rig = as
		default:
			continue
		}
		failed = append(failed, c)
	}
	status, err := f.call(ctx, "GET", at+"/status", nil)
	if refused := new(Error); err != nil && !errors.As(err, &refused) {
		return nil, err
	}
	for _, s := range status.Get("statuses").Array() {
		c := Check{ID: s.Get("id").String(), Name: s.Get("context").String(), Log: s.Get("description").String()}
		switch s.Get("state").String() {
		case "error":
			c.Rig = "error"
		case "failure":
		default:
			continue
		}
		failed = append(failed, c)
	}
	return failed, nil
}

// job reads the log of a check of GitHub Actions, or finds that none of its steps ran.
func (f *Forge) job(ctx context.Context, c *Check, as string) error {
	at := f.project(f.Target) + "/actions/jobs/" + c.ID
	got, err := f.call(ctx, "GET", at, nil)
	if refused := new(Error); errors.As(err, &refused) || errors.Is(err, ErrUnknown) {
		if as == "timed_out" {
			c.Rig = "timed out"
		}
		return nil // a check of another program
	} else if err != nil {
		return err
	}
	ran := func(s gjson.Result) bool {
		return s.Get("conclusion").String() == "failure" || as == "timed_out" &&
			s.Get("started_at").String() != "" && s.Get("number").Int() > 1
	}
	switch steps := got.Get("steps").Array(); {
	case got.Get("runner_id").Exists() && got.Get("runner_id").Int() == 0:
		c.Rig = "no runner"
		return nil
	case !slices.ContainsFunc(steps, ran):
		c.Rig = strings.ReplaceAll(as, "_", " ") + " before a step"
		return nil
	}
	c.Log, err = f.log(ctx, at+"/logs")
	return err
}

// log reads the failing part of a log, "" for a log that the forge does not have.
func (f *Forge) log(ctx context.Context, path string) (string, error) {
	log, err := f.raw(ctx, "GET", path, nil)
	if errors.Is(err, context.Canceled) {
		return "", err
	}
	return failingPart(string(log)), nil
}

// jobs returns the failed jobs of a merge request's newest pipeline.
func (f *Forge) jobs(ctx context.Context, number int64, commit string) (failed []Check, err error) {
	lines, err := f.call(ctx, "GET", fmt.Sprintf("%s/%d/pipelines", f.requests(), number), nil)
	if err != nil {
		return nil, err
	}
	for _, line := range lines.Array() {
		if line.Get("sha").String() != commit {
			continue
		}
		at := f.project(cmp.Or(line.Get("project_id").String(), f.Target))
		jobs, err := f.all(ctx, at+"/pipelines/"+line.Get("id").String()+"/jobs", "")
		if err != nil {
			return nil, err
		}
		for _, job := range jobs {
			c := Check{ID: job.Get("id").String(), Name: job.Get("name").String()}
			why := job.Get("failure_reason").String()
			switch status := job.Get("status").String(); {
			case status == "canceled":
				c.Rig = "cancelled"
			case status != "failed" || job.Get("allow_failure").Bool():
				continue
			case why == "" || why == "script_failure" || why == "job_execution_timeout":
				if c.Log, err = f.log(ctx, at+"/jobs/"+c.ID+"/trace"); err != nil {
					return nil, err
				}
			default:
				c.Rig = strings.ReplaceAll(why, "_", " ")
			}
			failed = append(failed, c)
		}
		break
	}
	return failed, nil
}

var (
	stampOrColor = pattern.New(`(?m)^\x{feff}?\d{4}-\d\d-\d\dT[\d:.]+Z |\x1b\[[0-9;]*[A-Za-z]`)
	failingLine  = pattern.New(`(?i)##\[error\]|\berror\b|\bfail(ed|ure)?\b|--- FAIL|panic:|Traceback`)
)

const (
	logBytes  = 8 << 10
	linesLead = 5
)

// failingPart cuts a log to the part that failed: from the first failing line of its last group on, bounded.
func failingPart(log string) string {
	lines := strings.Split(strings.TrimSpace(stampOrColor().ReplaceAllString(log, "")), "\n")
	end := len(lines)
	for i, l := range lines {
		if strings.HasPrefix(l, "##[error]") {
			end = i + 1
			break // the step that failed; later steps only clean up
		}
	}
	begin := 0
	for i := end - 1; i > 0; i-- {
		if strings.HasPrefix(lines[i], "##[endgroup]") {
			begin = i + 1
			break
		}
	}
	part := lines[begin:end]
	if first := slices.IndexFunc(part, failingLine().MatchString); first > linesLead {
		part = part[first-linesLead:]
	}
	out := strings.Join(part, "\n")
	if len(out) > logBytes {
		out = out[:logBytes/2] + "\n[...]\n" + out[len(out)-logBytes/2:]
	}
	return strings.ToValidUTF8(out, "?")
}
