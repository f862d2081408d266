// Package wait waits for a time, or until something is so, and no longer than its context.
package wait

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// stopError is an error that more probes would not change.
type stopError struct{ error }

func (e stopError) Unwrap() error { return e.error }

// Stop makes [Until] return err at once instead of probing again.
func Stop(err error) error { return stopError{err} }

// Until calls probe every interval until it returns nil or an error made by [Stop], or ctx ends. A
// probe that takes longer than the interval is called at most half of the time. When ctx ends, the
// error wraps ctx.Err() and the last answer.
func Until(ctx context.Context, interval time.Duration, probe func(context.Context) error) error {
	var last error
	for {
		began := time.Now()
		err := probe(ctx)
		if err == nil {
			return nil
		}
		if stop, ok := errors.AsType[stopError](err); ok {
			return stop.error
		}
		if last == nil || ctx.Err() == nil { // an answer that was cut short says less than the one before
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (last answer: %w)", ctx.Err(), last)
		case <-time.After(max(interval, time.Since(began))):
		}
	}
}

// Pause returns after d, or with ctx.Err() as soon as ctx ends.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// For is [Until] with a timeout.
func For(ctx context.Context, timeout, interval time.Duration, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return Until(ctx, interval, probe)
}
