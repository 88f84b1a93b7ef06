package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/text"
)

// Entry is one line of git config.
type Entry struct {
	Key    string // section and name in lower case, the part between as written
	Value  string // "true" for a key without a value, as git reads it
	Origin string // for example "file:/home/a/.gitconfig" or "command line:"
	Scope  string // system, global, local, worktree or command
}

// Value is a setting with its value and origin: "default", "flag --x", "environment X", or git's name of the origin,
// such as file:.git/config.
type Value struct {
	Name   string
	Value  string
	Values []string // values of a repeatable setting in order; else nil
	Origin string
	Secret bool
	url    bool
	judges bool
}

// Error is a setting that cannot be used. It names the setting and its origin.
type Error struct {
	msg  string
	Hint string // the fix, or ""
}

func (e *Error) Error() string { return e.msg }

// unsetHint returns the command that removes a value at its origin, or for a flag the command that shows its help.
func unsetHint(key, origin string) string {
	if path, ok := strings.CutPrefix(origin, "file:"); ok {
		return text.ShellQuote("git", "config", "--file", path, "--unset-all", key)
	}
	if name, ok := strings.CutPrefix(origin, "environment "); ok {
		return "unset " + name
	}
	if strings.HasPrefix(origin, "flag ") {
		return "git tilth run -h"
	}
	return ""
}

// Config holds every setting, checked.
type Config struct {
	values map[string]Value
	agents map[string]map[string]string
	prices map[string]price
}

// Load reads all settings. flags has the flags of the command line by name. The error is an *Error.
func Load(environ []string, flags map[string]string, entries []Entry) (*Config, error) {
	c := &Config{values: map[string]Value{}, agents: map[string]map[string]string{}, prices: map[string]price{}}
	env := map[string]string{}
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok {
			env[k] = v
		}
	}
	fromGit, err := c.sortEntries(entries)
	if err != nil {
		return nil, err
	}
	for _, s := range settings {
		v, err := resolve(s, env, flags, fromGit[strings.ToLower(s.Name)])
		if err != nil {
			return nil, err
		}
		c.values[s.Name] = v
	}
	return c, nil
}

// signCommits is a setting with git's commit.gpgSign as its default.
const signCommits = "tilth.signcommits"

// sortEntries groups the tilth.* entries by lower-case name and takes out the agent
// descriptions (tilth.agent.<name>.<key>) (the agent package knows their keys), and the prices of models.
func (c *Config) sortEntries(entries []Entry) (map[string][]Entry, error) {
	known := map[string]Setting{}
	for _, s := range settings {
		known[strings.ToLower(s.Name)] = s
	}
	out, signs := map[string][]Entry{}, 0
	for _, e := range entries {
		if strings.EqualFold(e.Key, "commit.gpgSign") {
			if _, err := parseBool(e.Value); err == nil { // git-tilth's own settings take precedence
				as := Entry{Key: e.Key, Value: e.Value, Origin: "commit.gpgSign, " + e.Origin, Scope: e.Scope}
				out[signCommits] = slices.Insert(out[signCommits], min(signs, len(out[signCommits])), as)
				signs++
			}
			continue
		}
		if !strings.HasPrefix(strings.ToLower(e.Key), "tilth.") {
			continue
		}
		if name, key, ok := agentKey(e.Key); ok {
			if c.agents[name] == nil {
				c.agents[name] = map[string]string{}
			}
			c.agents[name][key] = e.Value
			continue
		}
		lower := strings.ToLower(e.Key)
		if model, ok := strings.CutPrefix(lower, pricePrefix); ok {
			if err := c.setPrice(strings.TrimSuffix(model, priceSuffix), e); err != nil {
				return nil, err
			}
			continue
		}
		s, ok := known[lower]
		if !ok {
			msg := fmt.Sprintf("unknown setting %s (%s)%s", e.Key, e.Origin, didYouMean(lower))
			return nil, &Error{msg, unsetHint(e.Key, e.Origin)}
		}
		if s.envOnly {
			msg := fmt.Sprintf("%s (%s): keys are not read from git config; use %s, or store it with git credential",
				s.Name, e.Origin, s.Env)
			return nil, &Error{msg, unsetHint(e.Key, e.Origin)}
		}
		out[lower] = append(out[lower], e)
	}
	return out, nil
}

// agentKey splits tilth.agent.<name>.<key>. The name may have dots, as in git's subsections.
func agentKey(key string) (name, sub string, ok bool) {
	const prefix = "tilth.agent."
	if len(key) < len(prefix) || !strings.EqualFold(key[:len(prefix)], prefix) {
		return "", "", false
	}
	rest := key[len(prefix):]
	i := strings.LastIndexByte(rest, '.')
	if i <= 0 {
		return "", "", false
	}
	return rest[:i], strings.ToLower(rest[i+1:]), true
}

// didYouMean names the known setting that is nearest to key.
func didYouMean(key string) string {
	var known []string
	for _, s := range settings {
		known = append(known, strings.ToLower(s.Name))
	}
	near, _ := text.Nearest(key, known)
	if i := slices.Index(known, near); i >= 0 {
		return "; did you mean " + settings[i].Name + "?"
	}
	return "; git tilth config lists the known ones"
}

// Unknown is a TILTH_* variable that is not a setting, with the nearest known variable if any.
type Unknown struct {
	Name, Nearest string
	Slips         int // differing letters
}

// ownVariables are variables of git-tilth, or of a script in docs/fleet, that are not settings.
var ownVariables = []string{"TILTH_HOME", "TILTH_INSIDE", "TILTH_COMMITTING", "TILTH_HOOK_INPUT", "TILTH_LANE_NUMBER",
	"TILTH_CLONES", "TILTH_TASK", "TILTH_CONVERSATION", "TILTH_MODEL", "TILTH_READ_ONLY"}

// UnknownVariables are the TILTH_* variables of an environment that git-tilth does not know. Empty ones are left out.
func UnknownVariables(environ []string) (unknown []Unknown) {
	var known []string
	for _, s := range settings {
		if s.Env != "" {
			known = append(known, s.Env)
		}
	}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "TILTH_") || value == "" || strings.HasPrefix(name, "TILTH_NOTIFY_") ||
			slices.Contains(known, name) || slices.Contains(ownVariables, name) {
			continue
		}
		near, slips := text.Nearest(name, append(known, "TILTH_HOME"))
		unknown = append(unknown, Unknown{name, near, slips})
	}
	return unknown
}

func resolve(s Setting, env, flags map[string]string, entries []Entry) (Value, error) {
	v := Value{Name: s.Name, Value: s.Default, Origin: "default", Secret: s.kind == kindSecret, url: s.kind == kindURL,
		judges: s.judges}
	take := func(text, origin string) error {
		text = strings.TrimSpace(text)
		if text == "" {
			return nil
		}
		if err := check(s, text, origin); err != nil {
			return err
		}
		v.Value, v.Origin = text, origin
		return nil
	}
	if s.kind == kindList {
		return resolveList(s, v, entries)
	}
	// Check all entries, so that an invalid value is an error even if a stronger one overrides it.
	for _, e := range entries {
		if err := take(e.Value, e.Origin); err != nil {
			return v, err
		}
		if strings.TrimSpace(e.Value) == "" {
			v.Value, v.Origin = s.Default, "default"
		}
	}
	if err := take(env[s.Env], "environment "+s.Env); err != nil {
		return v, err
	}
	if text, ok := flags[s.Flag]; ok && s.Flag != "" {
		if err := take(text, "flag --"+s.Flag); err != nil {
			return v, err
		}
	}
	return v, nil
}

// resolveList fills in v, the value of a list.
func resolveList(s Setting, v Value, entries []Entry) (Value, error) {
	v.Values = []string{} // an empty list, not null in JSON
	alone := ""           // the origin of the value that has to be alone
	for _, e := range entries {
		switch {
		case e.Value == "": // clears the list, as with git's own multi-valued settings
			v.Values, v.Origin, alone = []string{}, "default", ""
			continue
		case e.Value == s.alone && alone != "":
			continue
		case e.Value == s.alone:
			alone = e.Origin
		}
		v.Values, v.Origin = append(v.Values, e.Value), e.Origin
	}
	if alone != "" && len(v.Values) > 1 {
		msg := fmt.Sprintf("%s = %s (%s) cannot be combined with other values", s.Name, s.alone, alone)
		hint := unsetHint(s.Name, alone)
		if hint != "" {
			hint += " " + text.ShellQuote("^"+s.alone+"$")
		}
		return v, &Error{msg, hint}
	}
	v.Value = strings.Join(v.Values, "\n")
	return v, nil
}

func check(s Setting, text, origin string) error {
	var err error
	if len(s.values) > 0 && !slices.Contains(s.values, text) {
		err = fmt.Errorf("not one of %s", strings.Join(s.values, ", "))
	}
	switch s.kind {
	case kindCount, kindPositive:
		var n int64
		n, err = parseCount(text)
		if err == nil && n == 0 && s.kind == kindPositive {
			err = fmt.Errorf("must be at least 1")
		}
	case kindNumber, kindSeconds:
		_, err = parseNumber(text)
	case kindBool:
		_, err = parseBool(text)
	case kindDuration:
		_, err = parseDuration(text)
	}
	if err == nil && s.check != nil {
		err = s.check(text)
	}
	if err != nil {
		return &Error{fmt.Sprintf("%s = %q (%s): %s", s.Name, text, origin, err), unsetHint(s.Name, origin)}
	}
	return nil
}

func parseCount(text string) (int64, error) {
	digits, factor := text, int64(1)
	if power := strings.IndexByte("kmg", text[len(text)-1]|0x20); power >= 0 {
		digits, factor = text[:len(text)-1], 1<<(10*(power+1))
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || strings.HasPrefix(digits, "+") {
		return 0, fmt.Errorf("not a whole number")
	}
	if n < 0 {
		return 0, fmt.Errorf("must not be negative")
	}
	if n > math.MaxInt64/factor {
		return 0, fmt.Errorf("too large")
	}
	return n * factor, nil
}

func parseNumber(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || strings.ContainsAny(text, "xX_") {
		return 0, fmt.Errorf("not a number")
	}
	if f < 0 {
		return 0, fmt.Errorf("must not be negative")
	}
	if f > 1e9 {
		return 0, fmt.Errorf("too large")
	}
	return f, nil
}

func parseBool(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0":
		return false, nil
	}
	return false, fmt.Errorf("not a boolean (true or false)")
}

func parseDuration(text string) (time.Duration, error) {
	if f, err := parseNumber(text); err == nil {
		if f > float64(math.MaxInt64)/float64(time.Minute) {
			return 0, fmt.Errorf("too large")
		}
		return time.Duration(f * float64(time.Minute)), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("not a duration such as 90s, 15m or 6h")
	}
	return d, nil
}

// All returns all settings, sorted by name. It masks secrets, also those in URLs.
func (c *Config) All() []Value {
	var out []Value
	for _, v := range c.values {
		if v.Secret && v.Value != "" {
			v.Value = mask(v.Value)
		}
		if v.url {
			v.Value = ShownURL(v.Value)
		}
		out = append(out, v)
	}
	for name, keys := range c.agents {
		for key, val := range keys {
			name := "tilth.agent." + name + "." + key
			out = append(out, Value{Name: name, Value: val, Origin: "git config", judges: true})
		}
	}
	for name, p := range c.prices {
		out = append(out, Value{Name: pricePrefix + name, Value: p.text, Origin: p.origin})
	}
	slices.SortFunc(out, func(a, b Value) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Judging returns the settings that affect validation and review, sorted by name, with passwords in URLs masked. It
// leaves out settings without a value.
func (c *Config) Judging() []Value {
	return slices.DeleteFunc(c.All(), func(v Value) bool { return v.Value == "" || !v.judges })
}

// mask hides a secret except for its last characters, so that its owner recognises it.
func mask(secret string) string {
	if len(secret) < 12 {
		return "****"
	}
	return "****" + secret[len(secret)-4:]
}

// Get returns a setting by its documented name.
func (c *Config) Get(name string) Value { return c.values[name] }

// Text returns a setting's value, "" when it has none.
func (c *Config) Text(name string) string { return c.values[name].Value }

// List returns the values of a repeatable setting.
func (c *Config) List(name string) []string { return c.values[name].Values }

// parsed returns a value that Load has checked, or zero for a setting without one.
func parsed[T any](c *Config, name string, parse func(string) (T, error)) T {
	var none T
	if c.values[name].Value == "" {
		return none
	}
	v, _ := parse(c.values[name].Value)
	return v
}

// Count returns a whole number.
func (c *Config) Count(name string) int64 { return parsed(c, name, parseCount) }

// Number returns a decimal number.
func (c *Config) Number(name string) float64 { return parsed(c, name, parseNumber) }

// Bool returns a boolean.
func (c *Config) Bool(name string) bool { return parsed(c, name, parseBool) }

// Duration returns a span of time.
func (c *Config) Duration(name string) time.Duration { return parsed(c, name, parseDuration) }

// Agents returns the agent programs described in git config: name to its keys.
func (c *Config) Agents() map[string]map[string]string { return c.agents }

// FlagSettings yields the settings with a flag, for the commands to declare.
func FlagSettings(yield func(*Setting) bool) {
	for i := range settings {
		if s := &settings[i]; s.Flag != "" && !yield(s) {
			return
		}
	}
}
