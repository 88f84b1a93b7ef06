package equip

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/gitx"
)

// keyless reports whether a role's endpoint has no key.
func (k *Kit) keyless(role config.Role) bool {
	e := k.Config.Endpoint(role)
	return e.APIKey == "" && k.credential(e.BaseURL) == ""
}

// askKey sets a variable to a key that the user pastes, without an echo on the screen or a line in the shell's history.
func askKey(name string) string {
	return "echo 'paste the key, then Enter:' && read -rs " + name + " && export " + name
}

// helperPatience is the time that a credential helper may take: some ask a server.
const helperPatience = 30 * time.Second

// credential returns the key that git's credential helpers have for a URL. They are asked once. No key is not an error:
// local servers need none, and other servers refuse the call themselves.
func (k *Kit) credential(url string) string {
	if _, asked := k.asked[url]; !asked {
		ctx, cancel := context.WithTimeout(k.Ctx, helperPatience)
		defer cancel()
		k.asked[url] = Password(ctx, k.Git, k.Common, url)
	}
	return k.asked[url]
}

// Password asks the credential helpers of the user, and of the repository with this common directory unless it is "",
// for the password of a URL; "" for none. It never prompts, and a helper that waits for input ends with the context.
func Password(ctx context.Context, g *gitx.Git, common, url string) (password string) {
	if url == "" || strings.ContainsAny(url, "\n\x00") {
		return ""
	}
	c := gitx.Command{Dir: "/", Args: []string{"credential", "fill"}}
	if common != "" {
		c = gitx.InRepo(common, c.Args...)
	}
	c.Stdin, c.Keys = []byte("url="+url+"\n\n"), true
	out, err := g.Read(ctx, c)
	for line := range strings.Lines(string(out)) {
		if value, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "password="); is && err == nil {
			password = value
		}
	}
	return password
}

// hide adds a key that did not come from the environment to the keys that the record redacts. Each role may have a key.
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
