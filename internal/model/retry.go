package model

import (
	"context"
	"errors"
	"time"
)

// DefaultAttempts is how often a request is made before its last failure counts.
const DefaultAttempts = 8

// Retry is how ChatRetry goes on after a failure that may pass.
type Retry struct {
	// Attempts bounds the requests in all; DefaultAttempts if it is 0 or less.
	Attempts int
	// Allow is asked before each attempt. Its error ends them, and is returned as it is.
	Allow func() error
	// Before is called with each failed attempt (from 1) that will be followed by another, before the wait.
	Before func(attempt int, f *Failure, wait time.Duration)
	// Sleep replaces the wait; it returns an error when ctx ends first.
	Sleep func(ctx context.Context, d time.Duration) error
}

// ChatRetry makes attempts until one is a turn, one cannot be mended, or they are used up; the history is the same in
// each. It returns the number of attempts made and, if none was a turn, the last *Failure or what Allow said. It does
// not wait for the end of a UsageLimit.
func (c *Client) ChatRetry(ctx context.Context, r Request, retry Retry) (*Reply, int, error) {
	if retry.Attempts <= 0 {
		retry.Attempts = DefaultAttempts
	}
	if retry.Sleep == nil {
		retry.Sleep = sleep
	}
	for attempt := 1; ; attempt++ {
		if retry.Allow != nil {
			if err := retry.Allow(); err != nil {
				return nil, attempt - 1, err
			}
		}
		reply, err := c.Chat(ctx, r)
		if err == nil {
			return reply, attempt, nil
		}
		var f *Failure
		if !errors.As(err, &f) || !f.Retryable() || attempt >= retry.Attempts {
			return nil, attempt, err
		}
		wait := waitAfter(attempt, f)
		if retry.Before != nil {
			retry.Before(attempt, f, wait)
		}
		if err := retry.Sleep(ctx, wait); err != nil {
			said := "canceled while waiting to ask again after: " + f.Message
			return nil, attempt, &Failure{Kind: Canceled, cause: err, Message: said}
		}
	}
}

// waitAfter doubles from a second to a minute; what the endpoint asks for outranks it.
func waitAfter(attempt int, f *Failure) time.Duration {
	if f.RetryAfter != nil {
		return *f.RetryAfter
	}
	return min(time.Second<<min(attempt-1, 6), time.Minute)
}

func sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
