package equip

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/gitx"
)

// keyless reports whether nothing gives a key for a role's endpoint.
func (k *Kit) keyless(role config.Role) bool {
	e := k.Config.Endpoint(role)
	return e.APIKey == "" && k.credential(e.BaseURL) == ""
}

// askKey sets a variable to a key that is pasted unseen: neither the screen nor the shell's history has it.
func askKey(name string) string {
	return "echo 'paste the key, then Enter:' && read -rs " + name + " && export " + name
}

// helperPatience is how long a credential helper may take: some ask a server.
const helperPatience = 30 * time.Second

// credential is what git's credential helpers have as the key of a URL, asked once. Having none is no fault: local
// servers need none, and others will say so.
func (k *Kit) credential(url string) string { return k.ask(k.Ctx, url)() }

func (k *Kit) ask(ctx context.Context, url string) (key func() string) {
	if k.asked[url] == nil {
		ctx, cancel := context.WithTimeout(ctx, helperPatience)
		answer := Password(ctx, k.Git, k.Common, url)
		k.asked[url] = sync.OnceValue(func() string { defer cancel(); return answer() })
	}
	return k.asked[url]
}

// AskAhead has the credential helpers asked for the key of a model that works, while it is found out what there is to
// do. stop ends them where nobody wants the answer any more.
func (k *Kit) AskAhead() (stop func()) {
	e := k.Config.Endpoint(config.Worker)
	c, err := k.ChooseAgent(config.Worker)
	if err != nil || c.Program != nil || e.APIKey != "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(k.Ctx)
	key := k.ask(ctx, e.BaseURL)
	return func() { cancel(); key() }
}

// Password asks the credential helpers of the user, and of the repository with this common directory unless it is "",
// for the password of a URL; "" for none. Nobody is prompted, and a helper that waits for someone ends with the
// context.
func Password(ctx context.Context, g *gitx.Git, common, url string) (password func() string) {
	if url == "" || strings.ContainsAny(url, "\n\x00") {
		return func() string { return "" }
	}
	c := gitx.Command{Dir: "/", Args: []string{"credential", "fill"}}
	if common != "" {
		c = gitx.InRepo(common, c.Args...)
	}
	c.Stdin, c.Keys = []byte("url="+url+"\n\n"), true
	answer := g.Ahead(ctx, c)
	return func() (password string) {
		out, err := answer()
		for line := range strings.Lines(string(out)) {
			if value, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "password="); is && err == nil {
				password = value
			}
		}
		return password
	}
}

// hide keeps a key that came from elsewhere than the environment out of the record. Each role may have one of its own.
func (k *Kit) hide(r config.Role, key string) {
	if key == "" || slices.Contains(slices.Collect(maps.Values(k.keys)), key) {
		return
	}
	name := "TILTH_API_KEY"
	if k.keys[name] != "" {
		name = "TILTH_" + strings.ToUpper(string(r)) + "_API_KEY"
	}
	k.keys[name] = key
	k.Redact = k.redactor()
}
