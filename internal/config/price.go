package config

import (
	"fmt"
	"strings"
)

// tilth.price.<model> is a price. git does not allow a slash or a dot in the last part of a key, so models with such a
// name have the key tilth.price.<model>.usd.
const (
	pricePrefix = "tilth.price."
	priceSuffix = ".usd"
)

// price is the price of a million tokens of prompt and of answer, in dollars.
type price struct {
	prompt, answer float64
	text, origin   string
}

// setPrice reads "<dollars for a million tokens of prompt> <and of answer>". A later entry outranks an earlier one.
func (c *Config) setPrice(model string, e Entry) error {
	p := price{text: e.Value, origin: e.Origin}
	parts := strings.Fields(e.Value)
	var err error
	if len(parts) == 2 {
		if p.prompt, err = parseNumber(parts[0]); err == nil {
			p.answer, err = parseNumber(parts[1])
		}
	}
	if len(parts) != 2 || err != nil {
		return &Error{fmt.Sprintf("%s = %q (%s): not two numbers, the dollars per million prompt and answer "+
			"tokens, as in \"3 15\"", e.Key, e.Value, e.Origin), unsetHint(e.Key, e.Origin)}
	}
	c.prices[model] = p
	return nil
}

// Price returns the configured price in dollars of one token of a model's prompt and of its answer.
func (c *Config) Price(model string) (prompt, answer float64, known bool) {
	p, known := c.prices[strings.ToLower(model)]
	return p.prompt / 1e6, p.answer / 1e6, known
}

// PriceKey returns the setting of a model's price.
func PriceKey(model string) string {
	plain := strings.Trim(strings.ToLower(model), "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
	if plain && model != "" && strings.ToLower(model)[0] >= 'a' {
		return pricePrefix + model
	}
	return pricePrefix + model + priceSuffix
}
