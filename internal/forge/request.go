package forge

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/session"
)

// head names the branch as the target project does.
func (f *Forge) head(branch string) string {
	owner, _, _ := strings.Cut(f.Path, "/")
	return owner + ":" + branch
}

// Find returns the open request of a branch, else its newest request, else nil.
func (f *Forge) Find(ctx context.Context, branch string) (*session.Request, error) {
	list, err := f.all(ctx, f.requests()+f.or("?state=all&head="+url.QueryEscape(f.head(branch)),
		"?source_branch="+url.QueryEscape(branch)), "")
	var found *session.Request
	for _, one := range list {
		r := f.request(one)
		if found == nil || r.State == session.RequestOpen && found.State != session.RequestOpen {
			found = r
		}
	}
	return found, err
}

// Request reads one request by its number.
func (f *Forge) Request(ctx context.Context, number string) (*session.Request, error) {
	got, err := f.call(ctx, "GET", f.requests()+"/"+number, nil)
	return f.request(got), err
}

func (f *Forge) request(r gjson.Result) *session.Request {
	text := func(paths ...string) string { return first(r, paths...).String() }
	out := &session.Request{Forge: f.Program, Number: first(r, "iid", "number").Int(), URL: text("web_url", "html_url"),
		State: text("state"), Base: text("target_branch", "base.ref"), Branch: text("source_branch", "head.ref"),
		Head: text("sha", "head.sha")}
	switch {
	case r.Get("merged").Bool(), text("merged_at") != "", out.State == "merged":
		out.State = session.RequestMerged
	case out.State == "open", out.State == "opened":
		out.State = session.RequestOpen
	default:
		out.State = session.RequestClosed
	}
	return out
}

// Open opens a request of a branch.
func (f *Forge) Open(ctx context.Context, base, branch, title, body string, draft bool) (*session.Request, error) {
	at, members := f.requests(), map[string]any{}
	switch {
	case f.isLab():
		if at = f.project(f.Path) + "/merge_requests"; f.targetID != 0 {
			members["target_project_id"] = f.targetID
		}
		if draft {
			title = "Draft: " + title
		}
	default:
		members["draft"] = draft
		if f.Target != f.Path {
			branch = f.head(branch)
		}
	}
	members["title"], members[f.or("body", "description")] = title, body
	members[f.or("base", "target_branch")], members[f.or("head", "source_branch")] = base, branch
	got, err := f.call(ctx, "POST", at, members)
	return f.request(got), err
}

// Set changes the text and the base of a request.
func (f *Forge) Set(ctx context.Context, number int64, body, base string) error {
	_, err := f.call(ctx, f.or("PATCH", "PUT"), fmt.Sprintf("%s/%d", f.requests(), number),
		map[string]any{f.or("body", "description"): body, f.or("base", "target_branch"): base})
	return err
}

// HeadRef returns the ref of the target project for a request's head.
func (f *Forge) HeadRef(r *session.Request) string {
	return f.or("refs/pull/", "refs/merge-requests/") + fmt.Sprint(r.Number) + "/head"
}
