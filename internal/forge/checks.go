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

// Look reads the threads and failed checks of a request, and counts them in it.
func (f *Forge) Look(ctx context.Context, r *session.Request) ([]Item, error) {
	threads, err := f.Threads(ctx, r)
	if err != nil {
		return nil, err
	}
	checks, err := f.Checks(ctx, r)
	r.Threads, r.Failed = len(threads), 0
	for _, c := range checks {
		if c.Rig == "" {
			r.Failed++
		}
	}
	return append(threads, checks...), err
}

// failed returns the item of a failed check.
func failed(r *session.Request, id, name gjson.Result) Item {
	return Item{ID: "check " + id.String(), Kind: "a failed check", Request: r, Name: name.String(),
		Title: "Fix the failed check " + name.String()}
}

// Checks returns the failed checks of a request's head, with the log of each that is the change's fault.
func (f *Forge) Checks(ctx context.Context, r *session.Request) (items []Item, err error) {
	if f.isLab() {
		return f.jobs(ctx, r)
	}
	at := f.project(f.Target) + "/commits/" + r.Head
	runs, err := f.all(ctx, at+"/check-runs?filter=latest", "check_runs")
	if err != nil {
		return nil, err
	}
	for _, run := range runs {
		c := failed(r, run.Get("id"), run.Get("name"))
		switch as := run.Get("conclusion").String(); as {
		case "failure", "timed_out":
			if err := f.job(ctx, &c, run.Get("id").String(), as); err != nil {
				return nil, err
			}
			c.Body = cmp.Or(c.Body, strings.TrimSpace(run.Get("output.title").String()+"\n"+
				run.Get("output.summary").String()+"\n"+failingPart(run.Get("output.text").String())))
		case "cancelled", "startup_failure", "stale":
			c.Rig = as
		default:
			continue
		}
		items = append(items, c)
	}
	status, err := f.call(ctx, "GET", at+"/status", nil)
	if refused := new(Error); err != nil && !errors.As(err, &refused) {
		return nil, err
	}
	for _, s := range status.Get("statuses").Array() {
		c := failed(r, s.Get("id"), s.Get("context"))
		c.Body = s.Get("description").String()
		if state := s.Get("state").String(); state == "error" {
			c.Rig = state
		} else if state != "failure" {
			continue
		}
		items = append(items, c)
	}
	return items, nil
}

// job reads the log of a check of GitHub Actions, or reports that none of its steps ran.
func (f *Forge) job(ctx context.Context, c *Item, id, as string) error {
	at := f.project(f.Target) + "/actions/jobs/" + id
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
	switch {
	case got.Get("runner_id").Exists() && got.Get("runner_id").Int() == 0:
		c.Rig = "no runner"
		return nil
	case !slices.ContainsFunc(got.Get("steps").Array(), ran):
		c.Rig = strings.ReplaceAll(as, "_", " ") + " before a step"
		return nil
	}
	c.Body, err = f.log(ctx, at+"/logs")
	return err
}

// log reads the failing part of a log, "" for a log that the forge does not have.
func (f *Forge) log(ctx context.Context, path string) (string, error) {
	log, err := f.raw(ctx, "GET", path, nil)
	if errors.Is(err, context.Canceled) || errors.As(err, new(*RateError)) {
		return "", err
	}
	return failingPart(string(log)), nil
}

// jobs returns the failed jobs of a merge request's newest pipeline.
func (f *Forge) jobs(ctx context.Context, r *session.Request) (items []Item, err error) {
	lines, err := f.call(ctx, "GET", fmt.Sprintf("%s/%d/pipelines", f.requests(), r.Number), nil)
	list := lines.Array()
	n := slices.IndexFunc(list, func(l gjson.Result) bool { return l.Get("sha").String() == r.Head })
	if err != nil || n < 0 {
		return nil, err
	}
	at := f.project(cmp.Or(list[n].Get("project_id").String(), f.Target))
	jobs, err := f.all(ctx, at+"/pipelines/"+list[n].Get("id").String()+"/jobs", "")
	if err != nil {
		return nil, err
	}
	for _, job := range jobs {
		c := failed(r, job.Get("id"), job.Get("name"))
		why := job.Get("failure_reason").String()
		switch status := job.Get("status").String(); {
		case status == "canceled":
			c.Rig = "cancelled"
		case status != "failed" || job.Get("allow_failure").Bool():
			continue
		case why == "" || why == "script_failure" || why == "job_execution_timeout":
			if c.Body, err = f.log(ctx, at+"/jobs/"+job.Get("id").String()+"/trace"); err != nil {
				return nil, err
			}
		default:
			c.Rig = strings.ReplaceAll(why, "_", " ")
		}
		items = append(items, c)
	}
	return items, nil
}

var (
	stampOrColor = pattern.New(`(?m)^\x{feff}?\d{4}-\d\d-\d\dT[\d:.]+Z |\x1b\[[0-9;]*[A-Za-z]`)
	failingLine  = pattern.New(`(?i)##\[error\]|\berror\b|\bfail(ed|ure)?\b|--- FAIL|panic:|Traceback`)
)

const (
	logBytes  = 8 << 10
	linesLead = 5
)

// failingPart cuts a log to the part that failed, bounded: from the first failing line of its last group to the first
// error, since later steps only clean up.
func failingPart(log string) string {
	lines := strings.Split(strings.TrimSpace(stampOrColor().ReplaceAllString(log, "")), "\n")
	isError := func(line string) bool { return strings.HasPrefix(line, "##[error]") }
	if end := slices.IndexFunc(lines, isError); end >= 0 {
		lines = lines[:end+1]
	}
	for i, l := range slices.Backward(lines) {
		if strings.HasPrefix(l, "##[endgroup]") {
			lines = lines[i+1:]
			break
		}
	}
	if first := slices.IndexFunc(lines, failingLine().MatchString); first > linesLead {
		lines = lines[first-linesLead:]
	}
	out := strings.Join(lines, "\n")
	if len(out) > logBytes {
		out = out[:logBytes/2] + "\n[...]\n" + out[len(out)-logBytes/2:]
	}
	return strings.ToValidUTF8(out, "?")
}
