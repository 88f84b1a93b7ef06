package config

import (
	"net/url"
	"slices"
	"strings"
)

// ShownURL returns a URL for display and records. It replaces a password by ****, and also a user name without a
// password (some users put a key there) and the values of parameters whose names look like a key. If text is not a URL,
// it may hide more.
func ShownURL(text string) string {
	scheme, rest, found := strings.Cut(text, "://")
	if found {
		scheme += "://"
	} else {
		scheme, rest = "", text
	}
	end := strings.IndexAny(rest, "/?#")
	if _, err := url.Parse(text); err != nil || end < 0 {
		end = len(rest) // for example a password with a slash
	}
	if at := strings.LastIndexByte(rest[:end], '@'); at >= 0 {
		user := "****"
		if name, _, has := strings.Cut(rest[:at], ":"); has {
			user = name + ":****"
		}
		rest = user + rest[at:]
	}
	path, query, found := strings.Cut(rest, "?")
	if !found {
		return scheme + rest
	}
	params := strings.Split(query, "&")
	for i, p := range params {
		if name, _, has := strings.Cut(p, "="); has && keyName(name) {
			params[i] = name + "=****"
		}
	}
	return scheme + path + "?" + strings.Join(params, "&")
}

func keyName(name string) bool {
	holds := func(word string) bool { return strings.Contains(strings.ToLower(name), word) }
	return slices.ContainsFunc([]string{"key", "token", "secret", "password", "sig"}, holds)
}

// URLs returns the URL settings as NAME=value with the name of each setting's variable, from any origin. Their
// passwords are secrets.
func (c *Config) URLs() []string {
	var out []string
	for _, s := range settings {
		if v := c.values[s.Name]; s.kind == kindURL && v.Value != "" {
			out = append(out, s.Env+"="+v.Value)
		}
	}
	return out
}
