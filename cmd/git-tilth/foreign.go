package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/git-tilth/git-tilth/internal/forge"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/seed"
	"github.com/git-tilth/git-tilth/internal/session"
)

// forgeWord matches an argument of run that names an issue, a label or a pull request.
var forgeWord = pattern.New(`^(?:(?:issue|pr):[0-9]+|label:.+)$`)

// importForeign imports issues or the review threads of a pull request as tasks. The request's head becomes the base.
func (w *repoContext) importForeign(r *prepRequest) (*seed.Imported, error) {
	again := "git tilth run " + r.from
	remote, address, err := w.pushRemote(w.Loc.CommonDir)
	if err != nil {
		return nil, err
	}
	if remote == "" {
		return nil, refuse("git remote add origin URL", "there is no remote to read %s from", r.from)
	}
	f, err := w.forgeOf(w.Loc.CommonDir, address)
	if err == nil {
		err = f.Enter(w.p.ctx, false)
	}
	kind, name, _ := strings.Cut(r.from, ":")
	var items []forge.Item
	switch {
	case err != nil:
	case kind == "issue":
		items, err = f.Issues(w.p.ctx, name, "")
	case kind == "label":
		items, err = f.Issues(w.p.ctx, "", name)
	default:
		items, err = w.importThreads(f, name, targetOf(f, remote, address), r)
	}
	if err != nil {
		return nil, w.forgeError(err, again)
	}
	if len(items) == 0 {
		return nil, refuse("git tilth run -h", "%s: nothing to do: no open issue or unresolved thread", r.from)
	}
	im := &seed.Imported{Format: "forge", Bundle: seed.Bundle{TestFiles: map[string]string{},
		Meta: session.SeedMeta{Source: r.from}}}
	for n, i := range items {
		im.Tasks = append(im.Tasks, i.Task(fmt.Sprintf("T-%03d", n+1)))
	}
	return im, nil
}

// shownForeign returns the whole text of a task written by others.
func shownForeign(t session.Task) string {
	return fmt.Sprintf("%s  %s (%s)\n    %s\n    - %s", t.ID, t.Title, t.Source,
		strings.ReplaceAll(t.Description, "\n", "\n    "), strings.Join(t.AcceptanceCriteria, "\n    - "))
}

// importThreads reads the threads of a pull request and fetches its head.
func (w *repoContext) importThreads(f *forge.Forge, number, remote string, r *prepRequest) ([]forge.Item, error) {
	request, err := f.Request(w.p.ctx, number)
	if err != nil {
		return nil, err
	}
	if request.State != session.RequestOpen {
		return nil, refuse(request.URL, "%s is %s", request.Name(), request.State)
	}
	items, err := f.Threads(w.p.ctx, request)
	if err != nil {
		return nil, err
	}
	if err := w.fetch(w.p.ctx, w.Loc.CommonDir, w.Loc.Source, remote, f.HeadRef(request)); err != nil {
		return nil, err
	}
	if r.baseSHA, err = w.Git.RevParse(w.p.ctx, w.Loc.CommonDir, request.Head+"^{commit}"); err != nil {
		return nil, refuse("git fetch "+remote, "the head of %s is not in this repository: %s", request.Name(),
			request.Head)
	}
	return items, nil
}

// fetch fetches a ref of a remote with the user's git. It changes no branch.
func (w *repoContext) fetch(ctx context.Context, common, dir, remote, ref string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if w.p.dryRun {
		w.p.printf("would run: git fetch --no-tags %s %s\n", remote, ref)
		return nil
	}
	return w.userGit(dir, w.Git.ForUser(common), nil, "fetch", "--quiet", "--no-tags", remote, ref)
}
