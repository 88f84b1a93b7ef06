package forge

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/session"
)

// Draft is a request to open.
type Draft struct {
	Base, Branch, Title, Body string
	Draft                     bool
}

// head names the branch as the target project does.
func (f *Forge) head(branch string) string {
	owner, _, _ := strings.Cut(f.Path, "/")
	return owner + ":" + branch
}

func (f *Forge) requests() string {
	if f.isLab() {
		return f.project(f.Target) + "/merge_requests"
	}
	return f.project(f.Target) + "/pulls"
}

// Find returns the open request of a branch, else its newest request, else nil.
func (f *Forge) Find(ctx context.Context, branch string) (*session.Request, error) {
	path := f.requests() + "?state=all&head=" + url.QueryEscape(f.head(branch))
	if f.isLab() {
		path = f.requests() + "?source_branch=" + url.QueryEscape(branch)
	}
	list, err := f.all(ctx, path, "")
	if err != nil {
		return nil, err
	}
	var found *session.Request
	for _, one := range list {
		r := f.request(one)
		if found == nil || r.State == session.RequestOpen && found.State != session.RequestOpen {
			found = r
		}
	}
	return found, nil
}

// Request reads one request by its number.
func (f *Forge) Request(ctx context.Context, number int64) (*session.Request, error) {
	got, err := f.call(ctx, "GET", fmt.Sprintf("%s/%d", f.requests(), number), nil)
	if err != nil {
		return nil, err
	}
	return f.request(got), nil
}

func (f *Forge) request(r gjson.Result) *session.Request {
	out := &session.Request{Forge: f.Program, Number: r.Get("number").Int(), URL: r.Get("html_url").String(),
		State: r.Get("state").String(), Base: r.Get("base.ref").String(), Branch: r.Get("head.ref").String(),
		Head: r.Get("head.sha").String()}
	if f.isLab() {
		out.Number, out.URL = r.Get("iid").Int(), r.Get("web_url").String()
		out.Base, out.Branch = r.Get("target_branch").String(), r.Get("source_branch").String()
		out.Head = r.Get("sha").String()
	}
	switch {
	case r.Get("merged").Bool(), r.Get("merged_at").String() != "", out.State == "merged":
		out.State = session.RequestMerged
	case out.State == "open", out.State == "opened":
		out.State = session.RequestOpen
	default:
		out.State = session.RequestClosed
	}
	return out
}

// Open opens a request.
func (f *Forge) Open(ctx context.Context, d Draft) (*session.Request, error) {
	body := map[string]any{"title": d.Title, "body": d.Body, "base": d.Base, "head": d.Branch, "draft": d.Draft}
	path := f.requests()
	if f.Target != f.Path {
		body["head"] = f.head(d.Branch)
	}
	if f.isLab() {
		title := d.Title
		if d.Draft {
			title = "Draft: " + title
		}
		body = map[string]any{"title": title, "description": d.Body, "target_branch": d.Base,
			"source_branch": d.Branch}
		if path = f.project(f.Path) + "/merge_requests"; f.targetID != 0 {
			body["target_project_id"] = f.targetID
		}
	}
	got, err := f.call(ctx, "POST", path, body)
	if err != nil {
		return nil, err
	}
	return f.request(got), nil
}

// Set changes the text (body) or the base of a request.
func (f *Forge) Set(ctx context.Context, number int64, fields map[string]string) error {
	method := "PATCH"
	if f.isLab() {
		lab := map[string]string{}
		for key, value := range fields {
			lab[map[string]string{"body": "description", "base": "target_branch"}[key]] = value
		}
		method, fields = "PUT", lab
	}
	_, err := f.call(ctx, method, fmt.Sprintf("%s/%d", f.requests(), number), fields)
	return err
}

// HeadRef is the ref of the target project at which a request's head is.
func (f *Forge) HeadRef(r *session.Request) string {
	if f.isLab() {
		return fmt.Sprintf("refs/merge-requests/%d/head", r.Number)
	}
	return fmt.Sprintf("refs/pull/%d/head", r.Number)
}
