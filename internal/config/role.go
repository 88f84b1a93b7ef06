package config

import (
	"cmp"
	"net/url"
	"strings"
)

// Role is the part that a model plays: worker, evaluator or interviewer.
type Role string

// The roles of tilth.<role>.* settings.
const (
	Worker    Role = "worker"
	Evaluator Role = "evaluator"
	Prep      Role = "prep"
)

// Endpoint is a role's model, with its URL and key.
type Endpoint struct {
	BaseURL, Model, APIKey string
}

// Endpoint resolves a role's endpoint: its own settings, else the general URL and the worker's model. A key is only
// sent to the host for which it was set.
func (c *Config) Endpoint(r Role) Endpoint {
	pre := "tilth." + string(r) + "."
	general := c.Text("tilth.baseUrl")
	e := Endpoint{
		BaseURL: cmp.Or(c.Text(pre+"baseUrl"), general),
		Model:   cmp.Or(c.Text(pre+"model"), c.Text("tilth.worker.model")),
		APIKey:  c.Text(pre + "apiKey"),
	}
	if e.BaseURL == "" && r != Worker {
		e.BaseURL = c.Text("tilth.worker.baseUrl")
	}
	if e.APIKey == "" && (general == "" || sameHost(e.BaseURL, general)) {
		e.APIKey = c.Text("tilth.apiKey")
	}
	if e.APIKey == "" && r != Worker && sameHost(e.BaseURL, c.Text("tilth.worker.baseUrl")) {
		e.APIKey = c.Text("tilth.worker.apiKey")
	}
	return e
}

func sameHost(a, b string) bool {
	ua, errA := url.Parse(a)
	ub, errB := url.Parse(b)
	return errA == nil && errB == nil && ua.Host != "" &&
		strings.EqualFold(ua.Scheme, ub.Scheme) && strings.EqualFold(ua.Host, ub.Host)
}
