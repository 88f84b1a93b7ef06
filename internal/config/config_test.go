package config

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

func load(t *testing.T, env []string, flags map[string]string, git ...Entry) *Config {
	t.Helper()
	c, err := Load(env, flags, git)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOrderOfPlaces(t *testing.T) {
	git := Entry{Key: "tilth.maxtokens", Value: "3", Origin: "file:.git/config"}
	env := []string{"TILTH_MAX_TOKENS=2"}
	flag := map[string]string{"max-tokens": "1"}
	for _, c := range []struct {
		name   string
		config *Config
		want   int64
		origin string
	}{
		{"flag", load(t, env, flag, git), 1, "flag --max-tokens"},
		{"environment", load(t, env, nil, git), 2, "environment TILTH_MAX_TOKENS"},
		{"git config", load(t, nil, nil, git), 3, "file:.git/config"},
		{"default", load(t, nil, nil), 10_000_000, "default"},
		{"empty flag", load(t, nil, map[string]string{"max-tokens": ""}, git), 3, "file:.git/config"},
		{"empty variable", load(t, []string{"TILTH_MAX_TOKENS="}, nil, git), 3, "file:.git/config"},
		{"empty git config", load(t, nil, nil, git, Entry{Key: "tilth.maxtokens", Origin: "file:x"}), 10_000_000,
			"default"},
	} {
		if got, from := c.config.Count("tilth.maxTokens"), c.config.Get("tilth.maxTokens").Origin; got != c.want ||
			from != c.origin {
			t.Errorf("%s: %d from %s, want %d from %s", c.name, got, from, c.want, c.origin)
		}
	}
}

func TestGarbageIsNamed(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"tilth.maxtokens", "lots", "not a whole number"},
		{"tilth.maxtokens", "-1", "must not be negative"},
		{"tilth.maxtokens", "1e3", "not a whole number"},
		{"tilth.maxtokens", "99999999999999999999", "not a whole number"},
		{"tilth.maxtokens", "9999999999999g", "too large"},
		{"tilth.maxiterationspertask", "0", "at least 1"},
		{"tilth.maxcost", "NaN", "not a number"},
		{"tilth.maxcost", "Inf", "not a number"},
		{"tilth.maxcost", "0x10", "not a number"},
		{"tilth.maxwallclockminutes", "ten", "not a number"},
		{"tilth.wait", "maybe", "not a boolean"},
		{"tilth.maxwait", "soon", "not a duration"},
		{"tilth.lease", "0s", "must be at least 2s"},
		{"tilth.apikey", "secret", "not read from git config"},
		{"tilth.nosuch", "1", "unknown setting"},
		{"tilth.worker.nosuch", "1", "unknown setting"},
	} {
		_, err := Load(nil, nil, []Entry{{Key: c.key, Value: c.value, Origin: "file:here"}})
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "file:here") {
			t.Errorf("%s=%s: %v, want %q and the origin", c.key, c.value, err, c.want)
		}
	}
	// A value that turns a list off is refused together with others; the hint removes it.
	none := Entry{Key: "tilth.setup", Value: "none", Origin: "file:here"}
	_, err := Load(nil, nil, []Entry{none, {Key: "tilth.setup", Value: "npm ci", Origin: "file:there"}})
	var e *Error
	if !errors.As(err, &e) ||
		!strings.HasPrefix(e.Error(), "tilth.setup = none (file:here) cannot be combined with other values") ||
		e.Hint != "git config --file here --unset-all tilth.setup '^none$'" {
		t.Errorf("none beside a command: %#v", e)
	}
	if got := load(t, nil, nil, none, none).List("tilth.setup"); !reflect.DeepEqual(got, []string{"none"}) {
		t.Errorf("none in two files: %q", got)
	}
	// An invalid value is an error even if a stronger one overrides it.
	if _, err := Load([]string{"TILTH_MAX_TOKENS=x"}, map[string]string{"max-tokens": "1"}, nil); err == nil {
		t.Error("a variable that is overridden may be garbage")
	}
}

func TestValues(t *testing.T) {
	c := load(t, []string{"TILTH_MAX_WAIT=90s", "TILTH_SIGN_OFF=yes", "TILTH_MAX_TOKENS=2k"}, nil,
		Entry{Key: "tilth.maxwallclockminutes", Value: "0.5"}, Entry{Key: "tilth.maxcost", Value: "12.5"},
		Entry{Key: "tilth.validator", Value: "a=b"}, Entry{Key: "tilth.validator", Value: ""},
		Entry{Key: "tilth.validator", Value: "c=d"})
	caps := c.Caps()
	if !reflect.DeepEqual(caps, Caps{MaxMinutes: 0.5, MaxCost: 12.5, MaxTokens: 2048, MaxIterations: 32,
		MaxEvaluatorCalls: 0}) {
		t.Errorf("%+v", caps)
	}
	if c.Duration("tilth.maxWait") != 90*time.Second || !c.Bool("tilth.signOff") {
		t.Error("duration or boolean")
	}
	if got := c.List("tilth.validator"); len(got) != 1 || got[0] != "c=d" {
		t.Errorf("%q, want the list after the empty value", got)
	}
	// A repeatable setting is a list, also if it is not set or was cleared.
	for _, entries := range [][]Entry{nil, {{Key: "tilth.setup", Value: "x"}, {Key: "tilth.setup", Value: ""}}} {
		if c := load(t, nil, nil, entries...); c.List("tilth.setup") == nil || c.List("tilth.again") != nil {
			t.Errorf("%v: %#v and %#v", entries, c.List("tilth.setup"), c.List("tilth.again"))
		}
	}
}

func TestKeysGoOnlyToTheirHost(t *testing.T) {
	env := []string{"TILTH_API_KEY=general", "TILTH_BASE_URL=https://one.example/v1", "TILTH_WORKER_MODEL=m"}
	for _, c := range []struct {
		more []string
		role Role
		url  string
		key  string
	}{
		{nil, Worker, "https://one.example/v1", "general"},
		{nil, Evaluator, "https://one.example/v1", "general"},
		{[]string{"TILTH_EVALUATOR_BASE_URL=https://two.example/v1"}, Evaluator, "https://two.example/v1", ""},
		{[]string{"TILTH_EVALUATOR_BASE_URL=https://one.example/v2"}, Evaluator, "https://one.example/v2", "general"},
		{[]string{"TILTH_EVALUATOR_BASE_URL=https://two.example/v1", "TILTH_EVALUATOR_API_KEY=own"}, Evaluator, "https://two.example/v1", "own"},
		{[]string{"TILTH_PREP_MODEL=p"}, Prep, "https://one.example/v1", "general"},
	} {
		e := load(t, append(env, c.more...), nil).Endpoint(c.role)
		if e.BaseURL != c.url || e.APIKey != c.key {
			t.Errorf("%s with %v: %+v", c.role, c.more, e)
		}
	}
	for _, v := range load(t, []string{"TILTH_API_KEY=sk-0123456789abcdef"}, nil).All() {
		if strings.Contains(v.Value, "0123") {
			t.Errorf("%s shows its secret: %s", v.Name, v.Value)
		}
	}
}

func TestAgentDescriptions(t *testing.T) {
	c := load(t, nil, nil, Entry{Key: "tilth.agent.my.tool.start", Value: "x"},
		Entry{Key: "tilth.agent.my.tool.presetid", Value: "true"})
	if got := c.Agents()["my.tool"]; got["start"] != "x" || got["presetid"] != "true" {
		t.Errorf("%v", c.Agents())
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("tilth.maxtokens", "12k")
	f.Add("tilth.agent..x", "")
	f.Add("TILTH.maxwait", "1e9h")
	f.Fuzz(func(t *testing.T, key, value string) {
		c, err := Load([]string{"TILTH_MAX_COST=" + value}, nil, []Entry{{Key: key, Value: value, Origin: "o"}})
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%T", err)
			}
			return
		}
		if caps := c.Caps(); caps[MaxIterations] < 1 || caps[MaxTokens] < 0 || caps[MaxMinutes] < 0 ||
			!(caps[MaxCost] >= 0) {
			t.Fatalf("%+v", caps)
		}
	})
}
