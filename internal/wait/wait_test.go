package wait_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/wait"
)

var errNotYet = errors.New("not yet")

func TestUntil_AsksAgainEachInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), 0
		require.NoError(t, wait.Until(t.Context(), time.Second, func(context.Context) error {
			if asked++; asked < 4 {
				return errNotYet
			}
			return nil
		}))
		require.Equal(t, 3*time.Second, time.Since(began))
	})
}

func TestUntil_RestsAsLongAsAProbeTook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		_ = wait.For(t.Context(), 9500*time.Millisecond, time.Millisecond, func(context.Context) error {
			asked++
			time.Sleep(time.Second) // virtual
			return errNotYet
		})
		require.Equal(t, 5, asked)
	})
}

func TestUntil_ReturnsTheLastAnswerAtTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		err := wait.For(t.Context(), time.Minute, time.Second, func(ctx context.Context) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return errNotYet
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errNotYet)
	})
}

func TestUntil_StopsAtAnErrorThatCannotPass(t *testing.T) {
	t.Parallel()
	asked := 0
	err := wait.Until(t.Context(), time.Hour, func(context.Context) error {
		asked++
		return wait.Stop(errNotYet)
	})
	require.Equal(t, errNotYet, err)
	require.Equal(t, 1, asked)
}

func TestPause_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.NoError(t, wait.Pause(t.Context(), time.Second))
		require.Equal(t, time.Second, time.Since(began))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, wait.Pause(ctx, time.Hour), context.DeadlineExceeded)
		require.Equal(t, 2*time.Second, time.Since(began))
	})
}
