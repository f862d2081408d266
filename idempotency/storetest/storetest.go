// Package storetest is the suite that every [idempotency.Store] passes. To run it on your own:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Bench {
//			return storetest.Bench{Store: mystore.New(connect(t))}
//		})
//	}
//
// The clocks of test and store need not agree, and a slow machine does no harm: what must stay
// alive has a long lease, and the suite waits for what must end.
package storetest

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

const (
	// short is a lifetime whose end the suite waits for.
	short = 150 * time.Millisecond
	// long outlives any run of the suite, on the slowest machine.
	long = 10 * time.Minute
	// patience limits each wait for the end of something short.
	patience = 20 * time.Second
	// pollEvery is how often a wait looks.
	pollEvery = 10 * time.Millisecond
)

// Bench is one store under test, for one case. Cases run in parallel and use scopes of their own,
// so several benches may share a store.
type Bench struct {
	Store idempotency.Store

	// Plant puts bytes under a key, as another version of the program or an accident would
	// have left them. It is nil for stores that do not keep the bytes of
	// [idempotency.Record.MarshalBinary]: they skip the cases about those.
	Plant func(t testing.TB, scope, key string, data []byte)
}

// Run runs the suite. setup is called once for each case.
func Run(t *testing.T, setup func(t *testing.T) Bench) {
	t.Helper()
	run := runner(t, setup)
	ownerCases(run)
	timeCases(run)
	concurrencyCases(run)
	contentCases(run)
	lookupCases(run)
	watchCases(t, run, setup)
	t.Run("bytes", func(t *testing.T) { bytesCases(t, setup) })
}

// cases runs one case of a group.
type cases func(name string, test func(t *testing.T, b *bench))

func runner(t *testing.T, setup func(t *testing.T) Bench) cases {
	t.Helper()
	return func(name string, test func(t *testing.T, b *bench)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, &bench{Bench: setup(t), scope: "storetest-" + string(idempotency.NewOwner())})
		})
	}
}

// bench adds the case's own scope.
type bench struct {
	Bench
	scope string
}

// pending returns a record of a new owner, to acquire a key with.
func (b *bench) pending(key string) idempotency.Record {
	return idempotency.Record{
		Scope: b.scope, Key: key, Status: idempotency.StatusInProgress, Owner: idempotency.NewOwner(),
		Fingerprint: idempotency.Fingerprint{1, 2, 3}, CreatedAt: time.Now().UTC().Truncate(time.Millisecond),
	}
}

// done returns the finished form of a pending record.
func done(pending idempotency.Record, body string) idempotency.Record {
	pending.Status = idempotency.StatusCompleted
	pending.Response = idempotency.Response{
		StatusCode: 201, Header: map[string][]string{"Content-Type": {"text/plain"}}, Body: []byte(body),
	}
	return pending
}

// held acquires a key for a new owner.
func (b *bench) held(t *testing.T, key string, lease time.Duration) idempotency.Record {
	t.Helper()
	pending := b.pending(key)
	existing, err := b.Store.Acquire(t.Context(), pending, lease)
	require.NoError(t, err)
	require.Nil(t, existing, "the key is free")
	return pending
}

// completed acquires and completes a key.
func (b *bench) completed(t *testing.T, key, body string) idempotency.Record {
	t.Helper()
	record := done(b.held(t, key, long), body)
	require.NoError(t, b.Store.Complete(t.Context(), record, long))
	return record
}

// look returns the record that another owner finds under a key. If it is nil, that owner now holds
// the key.
func (b *bench) look(t *testing.T, key string) *idempotency.Record {
	t.Helper()
	existing, err := b.Store.Acquire(t.Context(), b.pending(key), long)
	require.NoError(t, err)
	return existing
}

// takeover waits until the key's short lifetime has ended, and returns the record of the new
// owner that holds it then.
func (b *bench) takeover(t *testing.T, key string) idempotency.Record {
	t.Helper()
	next := b.pending(key)
	require.Eventually(t, func() bool {
		existing, err := b.Store.Acquire(t.Context(), next, long)
		return err == nil && existing == nil
	}, patience, pollEvery, "the lifetime of %s ends, and it can be acquired", key)
	return next
}

// pass returns when everything that got a short lifetime before has ended, without touching it: a
// key of its own, acquired later, has ended.
func (b *bench) pass(t *testing.T) {
	t.Helper()
	sentinel := string(idempotency.NewOwner())
	b.held(t, sentinel, short)
	b.takeover(t, sentinel)
}

// requireHolds checks that a key has this record.
func (b *bench) requireHolds(t *testing.T, want idempotency.Record) {
	t.Helper()
	requireSame(t, want, b.look(t, want.Key))
}

// requireSame compares all of a record but the time of its end, which the store sets.
func requireSame(t *testing.T, want idempotency.Record, found *idempotency.Record) {
	t.Helper()
	require.NotNil(t, found, "the record is there")
	require.False(t, found.ExpiresAt.IsZero(), "the store says when the record ends")
	want.ExpiresAt = found.ExpiresAt
	metadata := func(r idempotency.Record) string {
		data, _ := r.MarshalBinary()
		line, _, _ := strings.Cut(string(data), "\n")
		return line
	}
	require.JSONEq(t, metadata(want), metadata(*found))
	body, kept := want.Response.Body, found.Response.Body // they may be too long to print
	require.Truef(t, bytes.Equal(body, kept), "the body is %.99q, byte for byte, and not %.99q", body, kept)
}
