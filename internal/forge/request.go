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
	text := func(paths ...string) string { return first(r, paths...).String() }
	out := &session.Request{Forge: f.Program, Number: first(r, "iid", "number").Int(), URL: text("web_url", "html_url"),
		State: text("state"), Base: text("target_branch", "base.ref"), Branch: text("source_branch", "head.ref"),
		Head: text("sha", "head.sha")}
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

// labNames are GitLab's names for members of a request.
var labNames = map[string]string{"body": "description", "base": "target_branch", "head": "source_branch"}

// send creates or changes a request by its members, which have GitHub's names.
func (f *Forge) send(ctx context.Context, method, path string, members map[string]any) (*session.Request, error) {
	if f.isLab() {
		for name, lab := range labNames {
			if value, has := members[name]; has {
				members[lab] = value
				delete(members, name)
			}
		}
	}
	got, err := f.call(ctx, method, path, members)
	if err != nil {
		return nil, err
	}
	return f.request(got), nil
}

// Open opens a request.
func (f *Forge) Open(ctx context.Context, d Draft) (*session.Request, error) {
	path, members := f.requests(), map[string]any{"title": d.Title, "body": d.Body, "base": d.Base, "head": d.Branch}
	switch {
	case f.isLab():
		if path = f.project(f.Path) + "/merge_requests"; f.targetID != 0 {
			members["target_project_id"] = f.targetID
		}
		if d.Draft {
			members["title"] = "Draft: " + d.Title
		}
	default:
		members["draft"] = d.Draft
		if f.Target != f.Path {
			members["head"] = f.head(d.Branch)
		}
	}
	return f.send(ctx, "POST", path, members)
}

// Set changes the text and the base of a request.
func (f *Forge) Set(ctx context.Context, number int64, body, base string) error {
	method := "PATCH"
	if f.isLab() {
		method = "PUT"
	}
	path := fmt.Sprintf("%s/%d", f.requests(), number)
	_, err := f.send(ctx, method, path, map[string]any{"body": body, "base": base})
	return err
}

// HeadRef returns the ref of the target project at which a request's head is.
func (f *Forge) HeadRef(r *session.Request) string {
	if f.isLab() {
		return fmt.Sprintf("refs/merge-requests/%d/head", r.Number)
	}
	return fmt.Sprintf("refs/pull/%d/head", r.Number)
}
