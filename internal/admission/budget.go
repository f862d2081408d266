package admission

import (
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// endsEvery is how exactly a budget knows when an answer is forgotten: short against the day for
// which most are kept, and a few hundred numbers for an account that works all day.
const endsEvery = 10 * time.Minute

// tellEvery keeps an account that is refused from filling the log.
const tellEvery = time.Minute

// Budget bounds what is kept for each account: the number of answers and their bytes. Without it
// one account could fill the store of all. Each replica counts what it has kept itself, and forgets
// that when it ends, so the bound is approximate: at most the budget times the replicas, and once
// more for each restart. It is safe for concurrent use.
type Budget struct {
	keys, bytes int64

	mu       sync.Mutex
	accounts map[uuid.UUID]*kept
	refused  int64
}

// NewBudget returns a budget of so many answers, and of so many bytes in all, for each account.
func NewBudget(keys, bytes int64) *Budget {
	return &Budget{keys: keys, bytes: bytes, accounts: map[uuid.UUID]*kept{}}
}

// kept is what is kept for one account.
type kept struct {
	keys, bytes int64
	endings     []ending  // the first one first
	refused     time.Time // when it was last told that a request was refused
}

// ending is how much is forgotten at a time.
type ending struct {
	at          time.Time
	keys, bytes int64
}

// Keep counts an answer of so many bytes, which is kept for ttl.
func (b *Budget) Keep(account uuid.UUID, bytes int, ttl time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	k := b.accounts[account]
	if k == nil {
		k = &kept{}
		b.accounts[account] = k
	}
	k.forget(now)
	k.add(ending{now.Add(ttl).Truncate(endsEvery).Add(endsEvery), 1, int64(bytes)})
}

func (k *kept) add(more ending) {
	i, found := slices.BinarySearchFunc(k.endings, more.at, func(e ending, at time.Time) int { return e.at.Compare(at) })
	if !found {
		k.endings = slices.Insert(k.endings, i, ending{at: more.at})
	}
	k.endings[i].keys += more.keys
	k.endings[i].bytes += more.bytes
	k.keys += more.keys
	k.bytes += more.bytes
}

// forget takes off what has ended.
func (k *kept) forget(now time.Time) {
	for len(k.endings) > 0 && !k.endings[0].at.After(now) {
		k.keys -= k.endings[0].keys
		k.bytes -= k.endings[0].bytes
		k.endings = k.endings[1:]
	}
}

// Spent reports whether the account's budget is used up, and the time until some of it is free.
func (b *Budget) Spent(account uuid.UUID) (wait time.Duration, spent bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.accounts[account]
	if k == nil {
		return 0, false
	}
	now := time.Now()
	if k.forget(now); len(k.endings) == 0 {
		delete(b.accounts, account)
		return 0, false
	}
	return k.endings[0].at.Sub(now), k.keys >= b.keys || k.bytes >= b.bytes
}

// Refuse counts a request of an account that is refused because its budget is spent. It reports
// whether that is news, for a log: once a minute it is.
func (b *Budget) Refuse(account uuid.UUID) (news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused++
	k := b.accounts[account]
	if k == nil || time.Since(k.refused) < tellEvery {
		return false
	}
	k.refused = time.Now()
	return true
}

// BudgetStats are what a budget shows.
type BudgetStats struct {
	Refused int64   // since the start
	Most    float64 // of a budget that one account has used: 1 is all
}

// Stats returns a snapshot. It forgets accounts of which nothing is kept any more.
func (b *Budget) Stats() BudgetStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, stats := time.Now(), BudgetStats{Refused: b.refused}
	for account, k := range b.accounts {
		if k.forget(now); len(k.endings) == 0 {
			delete(b.accounts, account)
		}
		stats.Most = max(stats.Most, float64(k.keys)/float64(b.keys), float64(k.bytes)/float64(b.bytes))
	}
	return stats
}
