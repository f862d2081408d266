package authoritytest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/authority"
)

// errSilent is what a client of the provider returns that got no answer.
var errSilent = errors.New("the provider does not answer")

// fake is a provider. Under one key it charges once.
type fake struct {
	*bench
	mu              sync.Mutex
	charged         map[string]bool
	asked, lookedUp int
	silent, lost    bool // it does not answer; the request does not even reach it
}

func newFake(b *bench) *fake { return &fake{bench: b, charged: map[string]bool{}} }

func (f *fake) provider() authority.Provider {
	return authority.Provider{Ask: f.ask, LookUp: f.lookUp}
}

func (f *fake) ask(_ context.Context, a authority.Attempt) (authority.Run, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if !f.lost {
		f.charged[a.ID] = true
	}
	if f.silent || f.lost {
		return nil, errSilent
	}
	return f.note("charged " + a.ID), nil
}

func (f *fake) lookUp(_ context.Context, a authority.Attempt) (authority.Run, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lookedUp++
	if !f.charged[a.ID] {
		return nil, authority.ErrNotFound
	}
	return f.note("found " + a.ID), nil
}

// beginning begins under a new ID.
func (b *bench) beginning() authority.Run { return b.noting("begun", authority.Begun(b.New())) }

func providerCases(run cases) {
	run("a charge that is answered is settled and replayed", func(b *bench) {
		f, claim := newFake(b), b.claim("k", "a")
		for _, replayed := range []bool{false, true} {
			result, err := b.Operate(b.ctx, claim, b.beginning(), f.provider())
			require.NoError(b, err)
			require.Equal(b, replayed, result.Replayed)
		}
		require.Equal(b, 1, f.asked)
		require.Len(b, f.charged, 1)
	})
	run("what was begun without an ID is refused", func(b *bench) {
		f := newFake(b)
		_, err := b.Operate(b.ctx, b.claim("k", "a"), b.noting("begun", authority.Begun("")), f.provider())
		require.ErrorContains(b, err, "need the ID")
		require.Zero(b, f.asked)
		require.Zero(b, b.notes())
	})
	run("a provider without Ask begins nothing", func(b *bench) {
		_, err := b.Operate(b.ctx, b.claim("k", "a"), b.beginning(), authority.Provider{})
		require.ErrorContains(b, err, "Ask is nil")
		require.Zero(b, b.notes())
	})
	run("an unknown outcome is asked for again under the same key", func(b *bench) {
		f, claim := newFake(b), b.claim("k", "a")
		f.silent = true
		_, err := b.Operate(b.ctx, claim, b.beginning(), f.provider())
		require.ErrorIs(b, err, authority.ErrUnknown)
		require.ErrorIs(b, err, errSilent)
		f.silent = false
		_, err = b.Operate(b.ctx, claim, b.beginning(), f.provider())
		require.NoError(b, err)
		require.Equal(b, 2, f.asked)
		require.Len(b, f.charged, 1)
		require.Equal(b, 2, b.notes())
	})
	run("a worker settles what no client comes back for", func(b *bench) {
		f, claim := newFake(b), b.claim("k", "a")
		b.begin(claim) // and its process dies
		settled, err := b.Resume(b.ctx, f.provider(), 10)
		require.NoError(b, err)
		require.Zero(b, settled) // an attempt may be under way
		b.age(30 * time.Minute)
		settled, err = b.Resume(b.ctx, f.provider(), 10)
		require.NoError(b, err)
		require.Equal(b, 1, settled)
		require.Len(b, f.charged, 1)
		require.True(b, b.once(claim, b.note("n")).Replayed)
	})
	run("an unknown outcome that was settled elsewhere is answered", func(b *bench) {
		claim := b.claim("k", "a")
		result, err := b.Operate(b.ctx, claim, b.beginning(), authority.Provider{
			Ask: func(ctx context.Context, a authority.Attempt) (authority.Run, error) {
				_, err := b.SettleAny(ctx, a, b.note("event"))
				return nil, errors.Join(err, errSilent)
			}})
		require.NoError(b, err)
		require.Equal(b, "event", string(result.Body))
	})

	// What an attempt does at the provider follows from the age of what was begun.
	for _, c := range []struct {
		name              string
		age               time.Duration
		charged           bool // by an earlier attempt
		asks, looks       int
		settles, heldThen bool
	}{
		{"what is new is sent", 30 * time.Minute, false, 1, 0, true, false},
		{"what is older is looked up", 2 * time.Hour, true, 0, 1, true, false},
		{"what is older and absent is sent", 2 * time.Hour, false, 1, 1, true, false},
		{"what may soon be forgotten is not sent", 23*time.Hour + 30*time.Minute, false, 0, 1, false, false},
		{"what may be forgotten is looked up", 25 * time.Hour, true, 0, 1, true, false},
		{"what may be forgotten and is absent is held", 25 * time.Hour, false, 0, 1, false, true},
	} {
		run(c.name, func(b *bench) {
			f, claim := newFake(b), b.claim("k", "a")
			begun := b.begin(claim)
			f.charged[begun.ID] = c.charged
			b.age(c.age)
			settled, err := b.Resume(b.ctx, f.provider(), 10)
			require.NoError(b, err)
			require.Equal(b, c.settles, settled == 1)
			require.Equal(b, []int{c.asks, c.looks}, []int{f.asked, f.lookedUp})
			held, err := b.Held(b.ctx, 10)
			require.NoError(b, err)
			require.Equal(b, c.heldThen, len(held) == 1)
		})
	}
	run("without a look-up, what may be forgotten is held and never sent again", func(b *bench) {
		f, claim := newFake(b), b.claim("k", "a")
		begun := b.begin(claim)
		b.age(25 * time.Hour)
		_, err := b.Operate(b.ctx, claim, b.beginning(), authority.Provider{Ask: f.ask})
		require.ErrorIs(b, err, authority.ErrUnknown)
		_, err = b.Operate(b.ctx, claim, b.beginning(), authority.Provider{Ask: f.ask})
		require.True(b, b.taken(authority.InProgress, err).Held)
		require.Zero(b, f.asked)
		_, err = b.SettleAny(b.ctx, begun, b.note("a person has looked"))
		require.NoError(b, err)
	})
}
