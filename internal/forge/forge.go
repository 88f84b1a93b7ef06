// Package forge reads and changes issues and pull requests through gh and glab. It opens no connection itself.
package forge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/text"
)

const (
	gitHub = "gh"
	gitLab = "glab"
	// maxAnswer limits the bytes read of an answer.
	maxAnswer = 16 << 20
	// callTime is the time limit of a call.
	callTime = 2 * time.Minute
	// developer is the lowest of GitLab's access levels that may push.
	developer = 30
)

// Forge is a project on a server, reached through Program.
type Forge struct {
	Program   string // gh or glab
	Host      string
	Path      string // owner/name of the project that branches are pushed to
	Target    string // owner/name of the project that the request is for; after Enter
	Default   string // default branch; set by Enter
	Login     string // the user's; after Enter
	Dir       string
	Environ   []string
	Reviewers []string // bots that count as people with write access

	targetID int64 // GitLab's id of Target, if Target is not Path
	writers  map[string]bool
	closed   bool // the forge has refused to say who has write access, as to the owner of a fork
}

// Error is a refusal of the forge with the command that helps.
type Error struct {
	Msg, Hint string
	status    int // 403 or 404, if the forge answered so
}

func (e *Error) Error() string { return e.Msg }

// ErrUnknown is an answer of the program that is not the JSON of its API.
var ErrUnknown = errors.New("no answer of the forge's API")

// RateError is a rate limit of the forge.
type RateError struct{ Msg string }

func (e *RateError) Error() string { return "rate limit of the forge: " + e.Msg }

// Find returns the forge of a remote's address. A missing program is an *Error.
func Find(ctx context.Context, address, dir string, environ []string) (*Forge, error) {
	f := &Forge{Dir: dir, Environ: environ, writers: map[string]bool{}}
	f.Host, f.Path = HostOf(address)
	if f.Host == "" {
		return nil, &Error{Msg: "the remote is not on a forge: " + text.WithoutPassword(address), Hint: "git remote -v"}
	}
	f.Target = f.Path
	for _, program := range []string{gitHub, gitLab} {
		other := map[string]string{gitHub: "gitlab", gitLab: "github"}[program]
		if _, err := proc.LookPath(program, "", environ); err != nil || strings.Contains(f.Host, other) {
			continue
		}
		if f.Program == "" || f.isLoggedIn(ctx, program) && !f.isLoggedIn(ctx, f.Program) {
			f.Program = program
		}
	}
	if f.Program != "" {
		return f, nil
	}
	if strings.Contains(f.Host, "gitlab") {
		return nil, &Error{Msg: "glab is not installed", Hint: "https://gitlab.com/gitlab-org/cli#installation"}
	}
	return nil, &Error{Msg: "neither gh nor glab is installed", Hint: "https://cli.github.com"}
}

// isLoggedIn reports whether a program has a login to the host. The host's name may not tell which program it needs.
func (f Forge) isLoggedIn(ctx context.Context, program string) bool {
	f.Program = program
	_, err := f.call(ctx, "GET", "user", nil)
	return err == nil
}

// HostOf returns the host and the path of a remote's URL, without a user or password; "" of a path on this machine.
func HostOf(address string) (host, path string) {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		host, path = u.Hostname(), u.Path
	} else if before, after, ok := strings.Cut(address, ":"); ok && !strings.Contains(before, "/") {
		host, path = before[strings.LastIndex(before, "@")+1:], after // user@host:path, as ssh has it
	}
	return host, strings.TrimSuffix(strings.Trim(path, "/"), ".git")
}

func (f *Forge) isLab() bool { return f.Program == gitLab }

// or returns GitHub's or GitLab's word for the same thing.
func (f *Forge) or(hub, lab string) string {
	if f.isLab() {
		return lab
	}
	return hub
}

// project returns the path of a project in the API.
func (f *Forge) project(name string) string {
	return f.or("repos/"+name, "projects/"+url.PathEscape(name))
}

// requests returns the path of the target's pull or merge requests in the API.
func (f *Forge) requests() string { return f.project(f.Target) + f.or("/pulls", "/merge_requests") }

// raw runs one call of the API. body, if not nil, is sent as JSON.
func (f *Forge) raw(ctx context.Context, method, path string, body any) ([]byte, error) {
	c := proc.Cmd{Argv: []string{f.Program, "api", "--hostname", f.Host, "-X", method, path},
		Dir: f.Dir, Timeout: callTime, OutputCap: 2 * maxAnswer, SeparateStderr: true, Lasting: true,
		Env: append(slices.Clone(f.Environ), "GH_PROMPT_DISABLED=1", "NO_PROMPT=1", "GH_NO_UPDATE_NOTIFIER=1")}
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		c.Argv = append(c.Argv, "--input", "-", "-H", "Content-Type: application/json")
		c.Stdin = strings.NewReader(string(data))
	}
	out, err := proc.Run(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case out.Canceled:
		return nil, context.Canceled
	}
	said := text.OneLine(text.Visible(string(out.Stderr)))
	if out.ExitCode == 0 && !out.TimedOut && !strings.HasPrefix(said, f.Program+": ") { // glab 1.22 exits with 0
		return out.Output, nil
	}
	said = cmp.Or(said, text.OneLine(text.Visible(gjson.GetBytes(out.Output, "message").String())))
	return nil, f.refusal(out.ExitCode, text.Clip(said, 300))
}

// refusal interprets the failure of a call.
func (f *Forge) refusal(code int, said string) error {
	low := strings.ToLower(said)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(low, word) })
	}
	login := f.Program + " auth login --hostname " + text.ShellQuote(f.Host)
	forbidden := has("http 403", "403 forbidden")
	switch {
	case has("rate limit", "http 429", "429 too many"):
		return &RateError{said}
	case code == 4, has("auth login", "http 401", "401 unauthorized", "bad credentials", "not logged in"):
		return &Error{Msg: f.Program + " is not logged in to " + f.Host, Hint: login}
	case forbidden, has("http 404", "404 not found", "404 project not found"):
		e := &Error{"no permission on " + f.Host + ", or not found: " + said, f.Program + " auth status", 404}
		if forbidden {
			e.status = 403
		}
		return e
	case said == "":
		return ErrUnknown
	}
	return fmt.Errorf("%s: %s", f.Program, said)
}

// first returns the first existing member of an answer, because GitHub and GitLab use different names.
func first(r gjson.Result, paths ...string) gjson.Result {
	for _, path := range paths {
		if got := r.Get(path); got.Type != gjson.Null {
			return got
		}
	}
	return gjson.Result{}
}

// call is raw with an answer of JSON.
func (f *Forge) call(ctx context.Context, method, path string, body any) (gjson.Result, error) {
	out, err := f.raw(ctx, method, path, body)
	if err != nil {
		return gjson.Result{}, err
	}
	if len(out) > maxAnswer || !gjson.ValidBytes(out) {
		return gjson.Result{}, ErrUnknown
	}
	return gjson.ParseBytes(out), nil
}

// all reads the pages of a list at key, "" for the whole answer.
func (f *Forge) all(ctx context.Context, path, key string) (list []gjson.Result, err error) {
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	const perPage, maxPages = 100, 20
	for page := 1; page <= maxPages; page++ {
		got, err := f.call(ctx, "GET", fmt.Sprintf("%s%sper_page=%d&page=%d", path, sep, perPage, page), nil)
		if err != nil {
			return nil, err
		}
		if key != "" {
			got = got.Get(key)
		}
		list = append(list, got.Array()...)
		if len(got.Array()) < perPage {
			break
		}
	}
	return list, nil
}

// Enter checks the login and the permission to push, and finds the project that a fork's request is for.
func (f *Forge) Enter(ctx context.Context, push bool) error {
	user, err := f.call(ctx, "GET", "user", nil)
	if err != nil {
		return err
	}
	f.Login = cmp.Or(user.Get("login").String(), user.Get("username").String())
	repo, err := f.call(ctx, "GET", f.project(f.Path), nil)
	if err != nil {
		return err
	}
	may := repo.Get("permissions.push").Bool() ||
		repo.Get("permissions.project_access.access_level").Int() >= developer ||
		repo.Get("permissions.group_access.access_level").Int() >= developer
	f.targetID = repo.Get("forked_from_project.id").Int()
	f.Default = repo.Get("default_branch").String()
	upstream := first(repo, "parent.full_name", "forked_from_project.path_with_namespace").String()
	if upstream != "" {
		f.Target = upstream
		if above, err := f.call(ctx, "GET", f.project(upstream), nil); err == nil {
			f.Default = cmp.Or(above.Get("default_branch").String(), f.Default)
		}
	}
	if push && !may {
		return &Error{Msg: fmt.Sprintf("%s may not push to %s on %s", cmp.Or(f.Login, "the login"), f.Path, f.Host),
			Hint: "git config remote.pushDefault YOUR-FORK"}
	}
	return nil
}

// Writes reports whether a login has write access by the forge's own permission, or is a bot that the user named.
func (f *Forge) Writes(ctx context.Context, login, id string) (bool, error) {
	bare := func(s string) string { return strings.TrimSuffix(strings.ToLower(strings.TrimSpace(s)), "[bot]") }
	if slices.ContainsFunc(f.Reviewers, func(r string) bool { return r != "" && bare(r) == bare(login) }) {
		return true, nil
	}
	if is, known := f.writers[login]; known || login == "" {
		return is, nil
	}
	path := f.or("/collaborators/"+url.PathEscape(login)+"/permission", "/members/all/"+url.PathEscape(id))
	got, err := f.call(ctx, "GET", f.project(f.Target)+path, nil)
	if refused := new(Error); errors.As(err, &refused) && refused.status != 0 {
		f.closed = f.closed || refused.status == 403 // 404: the project does not know the login
	} else if err != nil {
		return false, err
	}
	is := slices.Contains([]string{"write", "maintain", "admin"}, got.Get("permission").String()) ||
		got.Get("access_level").Int() >= developer
	f.writers[login] = is
	return is, nil
}
