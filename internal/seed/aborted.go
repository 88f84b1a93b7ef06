package seed

import (
	"context"
	"fmt"
)

// aborted is ErrAborted for a context that has ended: errors.Is finds
// ErrAborted, context.Canceled and the cause that the caller gave.
func aborted(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || cause == err {
		return fmt.Errorf("%w: %w", ErrAborted, err)
	}
	return fmt.Errorf("%w: %w (%w)", ErrAborted, cause, err)
}
