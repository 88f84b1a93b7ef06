package config

import (
	"strings"
	"testing"
)

func TestShownURL(t *testing.T) {
	for in, want := range map[string]string{
		"":                                   "",
		"http://localhost:11434/v1":          "http://localhost:11434/v1",
		"http://user:SECRET@host/v1":         "http://user:****@host/v1",
		"http://user:SEC@RET@host:80/v1":     "http://user:****@host:80/v1",
		"http://user:SEC/RET@host/v1":        "http://user:****@host/v1",
		"http://user:SEC%RET@host/v1":        "http://user:****@host/v1",
		"http://user:SECRET@host":            "http://user:****@host",
		"http://:SECRET@host":                "http://:****@host",
		"https://SECRET@host/v1":             "https://****@host/v1",
		"user:SECRET@host/v1":                "user:****@host/v1",
		"https://host/v1/@latest":            "https://host/v1/@latest",
		"https://host/v1?api-version=2024-6": "https://host/v1?api-version=2024-6",
		"https://host/v1?a=b&api_key=SECRET": "https://host/v1?a=b&api_key=****",
	} {
		if got := ShownURL(in); got != want || strings.Contains(got, "SECRET") {
			t.Errorf("ShownURL(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestAllMasksPasswordsOfURLs(t *testing.T) {
	c, err := Load([]string{"TILTH_BASE_URL=http://user:SECRET@one/v1"}, nil, []Entry{
		{Key: "tilth.evaluator.baseurl", Value: "http://user:SECRET@two/v1", Origin: "file:x"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range c.All() {
		if strings.Contains(v.Value, "SECRET") {
			t.Errorf("%s = %s", v.Name, v.Value)
		}
	}
	if got := c.Text("tilth.baseUrl"); got != "http://user:SECRET@one/v1" {
		t.Errorf("the value in use is %s", got)
	}
	if got := strings.Join(c.URLs(), " "); got != "TILTH_BASE_URL=http://user:SECRET@one/v1 TILTH_EVALUATOR_BASE_URL=http://user:SECRET@two/v1" {
		t.Errorf("URLs: %s", got)
	}
}
