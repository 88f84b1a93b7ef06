package config

import "testing"

func TestPriceOfAModel(t *testing.T) {
	entries := []Entry{
		{"tilth.price.gpt-5", "1 2", "system", ""}, {"tilth.price.gpt-5", "1.25 10", "file:a", ""},
		{"tilth.price.House/Model-1.5.usd", "0 0", "file:a", ""},
	}
	c, err := Load(nil, nil, entries)
	if err != nil {
		t.Fatal(err)
	}
	if prompt, answer, known := c.Price("GPT-5"); prompt != 1.25e-6 || answer != 1e-5 || !known {
		t.Errorf("gpt-5 is %v, %v, %v", prompt, answer, known)
	}
	if _, _, known := c.Price("house/model-1.5"); !known {
		t.Error("a price of nothing is a price")
	}
	if _, _, known := c.Price("another"); known {
		t.Error("a model without a price has one")
	}
	for _, bad := range []string{"", "3", "3 x", "1 2 3", "-1 2"} {
		if _, err := Load(nil, nil, []Entry{{"tilth.price.m", bad, "file:a", ""}}); err == nil {
			t.Errorf("%q is taken for a price", bad)
		}
	}
	for model, want := range map[string]string{"gpt-5": "tilth.price.gpt-5", "a/b": "tilth.price.a/b.usd",
		"m-1.5": "tilth.price.m-1.5.usd", "4o": "tilth.price.4o.usd"} {
		if got := PriceKey(model); got != want {
			t.Errorf("the key of %s is %s", model, got)
		}
	}
}
