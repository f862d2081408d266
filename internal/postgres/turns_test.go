package postgres

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

var mug, tee = product{uuid.New(), "mug"}, product{uuid.New(), "tee"}

// takeAll takes every turn at a product.
func takeAll(t *testing.T, all *turns, p product) (leaves []func()) {
	t.Helper()
	for range turnsAtATime {
		leaves = append(leaves, all.take(t.Context(), []product{p}))
	}
	return leaves
}

// startTaking waits for a turn in another goroutine. The channel receives how to end it.
func startTaking(ctx context.Context, all *turns, products ...product) chan func() {
	taken := make(chan func(), 1)
	go func() { taken <- all.take(ctx, products) }()
	synctest.Wait()
	return taken
}

func TestTurns_LetFewAtATimeChangeOneProduct(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newTurns()
		leaves := takeAll(t, all, mug)
		began := time.Now()
		all.take(t.Context(), []product{tee, {mug.account, "cup"}, {tee.account, mug.sku}})()
		require.Equal(t, began, time.Now(), "of another product, and of another account")

		first, second := startTaking(t.Context(), all, mug), startTaking(t.Context(), all, mug)
		leaves[0]()
		synctest.Wait()
		require.Equal(t, []int{1, 0}, []int{len(first), len(second)}, "in the order of arrival")
		(<-first)()
		(<-second)()
		for _, leave := range leaves[1:] {
			leave()
		}
		require.Empty(t, all.of, "nothing is left")
	})
}

func TestTurns_GoOnWithoutOneWhenItDoesNotCome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newTurns()
		leaves := append(takeAll(t, all, mug), takeAll(t, all, tee)...)
		began := time.Now()
		leave := all.take(t.Context(), []product{mug, tee})
		require.Equal(t, turnPatience, time.Since(began), "for both together")
		leave()

		ctx, cancel := context.WithCancel(t.Context())
		waiting := startTaking(ctx, all, mug)
		cancel()
		synctest.Wait()
		(<-waiting)()
		for _, leave := range leaves {
			leave()
		}
		require.Empty(t, all.of)
	})
}
