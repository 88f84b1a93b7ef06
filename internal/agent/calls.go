package agent

import (
	"context"
	"errors"
	"time"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/record"
)

// Chatter is a model, as internal/model's Client is one.
type Chatter interface {
	ChatRetry(ctx context.Context, r model.Request, retry model.Retry) (*model.Reply, int, error)
}

// Calls makes the model calls of one role.
type Calls struct {
	Client Chatter
	Retry  model.Retry
	// Record counts what an attempt took and writes its model_call, whose scope and total it fills in.
	Record func(*record.ModelCall, model.Usage) error
	// Emit writes another event of the call.
	Emit func(record.Event) error
}

// Make makes one request until an answer is a turn. Every attempt is on the record before the next one is made. The
// error is what Record or Emit returned, else a *model.Failure.
func (c Calls) Make(ctx context.Context, req model.Request) (*model.Reply, error) {
	made, empties := 0, 0
	var recording error
	failed := func(n int, f *model.Failure, wait time.Duration) {
		made = n
		err := c.Record(failureCall(f, n, wait), f.Usage)
		if f.Kind == model.Empty {
			empties++
			err = errors.Join(err, c.Emit(&record.EmptyModelResponse{Streak: empties, FinishReason: f.FinishReason}))
		}
		if recording == nil {
			recording = err
		}
	}
	retry := c.Retry
	retry.Before = func(n int, f *model.Failure, wait time.Duration) {
		failed(n, f, wait)
		if c.Retry.Before != nil {
			c.Retry.Before(n, f, wait)
		}
	}
	reply, n, err := c.Client.ChatRetry(ctx, req, retry)
	var f *model.Failure
	switch {
	case recording != nil:
	case err == nil:
		recording = c.Record(replyCall(reply, n), reply.Usage)
	case errors.As(err, &f) && f.Kind != model.Canceled && ctx.Err() == nil && n > made:
		failed(n, f, 0)
	}
	if recording != nil {
		return nil, recording
	}
	return reply, err
}
