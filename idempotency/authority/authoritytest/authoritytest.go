// Package authoritytest is the suite that every table of an authority passes, whatever the types
// of its columns. To run it on your own:
//
//	func TestKeys(t *testing.T) {
//		authoritytest.Run(t, func(t *testing.T) authoritytest.Bench {
//			return authoritytest.Bench{Pool: migrated(t), Table: "idempotency_keys", Column: "account_id", New: uuid.NewString}
//		})
//	}
//
// The suite makes a table of its own, authoritytest_effects, for the effects of its requests.
package authoritytest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/authority"
)

// patience bounds every wait of a case.
const patience = time.Minute

// Bench is a table under test, for one case. Each case needs a table of its own, because it
// purges it and takes what is due.
type Bench struct {
	Pool   *pgxpool.Pool // of at least 4 connections
	Table  string        // empty: [authority.DefaultTable]
	Column string        // of scopes; empty: [authority.DefaultScope]
	// New makes a new text that the columns of scopes and of IDs hold. nil: a random text.
	New func() string
}

// Run runs the suite. setup is called once for each case; the cases run in parallel.
func Run(t *testing.T, setup func(t *testing.T) Bench) {
	t.Helper()
	run := func(name string, test func(b *bench)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newBench(t, setup(t)))
		})
	}
	onceCases(run)
	refusalCases(run)
	expiryCases(run)
	phaseCases(run)
	reuseCases(run)
	waitingCases(run)
	providerCases(run)
}

// cases runs one case of a group.
type cases func(name string, test func(b *bench))

// bench adds the case's own scope.
type bench struct {
	Bench
	*authority.Keys
	*testing.T
	ctx   context.Context
	scope string
}

func newBench(t *testing.T, b Bench) *bench {
	t.Helper()
	if b.Table == "" {
		b.Table = authority.DefaultTable
	}
	if b.Column == "" {
		b.Column = authority.DefaultScope
	}
	if b.New == nil {
		b.New = rand.Text
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	_, err := b.Pool.Exec(ctx, `SELECT pg_advisory_xact_lock(20250818);
		CREATE TABLE IF NOT EXISTS authoritytest_effects (scope text NOT NULL, note text NOT NULL, UNIQUE (scope, note))`)
	require.NoError(t, err)
	return &bench{Bench: b, Keys: authority.New(b.Pool, authority.WithTable(b.Table, b.Column)), T: t, ctx: ctx, scope: b.New()}
}

// claim is a claim of the case's scope. The fingerprint follows from the request.
func (b *bench) claim(key, request string) authority.Claim {
	return authority.Claim{Scope: b.scope, Key: key, Fingerprint: sha256.Sum256([]byte(request)), Operation: "test", TTL: time.Hour,
		ArrivedAt: time.Now()}
}

// answer is an answer that names a note.
func answer(status int, note string) authority.Answer {
	return authority.Answer{Status: status, Header: map[string]string{"Content-Type": "text/plain"}, Body: []byte(note), Resource: "/notes/" + note}
}

const insert = "INSERT INTO authoritytest_effects (scope, note) VALUES ($1, $2)"

// noting makes a note, statement by statement, and ends with an outcome.
func (b *bench) noting(note string, outcome authority.Outcome) authority.Run {
	return func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
		_, err := tx.Exec(ctx, insert, b.scope, note)
		return outcome, err
	}
}

// note makes a note and answers 201.
func (b *bench) note(note string) authority.Run {
	return b.noting(note, authority.Done(answer(201, note)))
}

// notes counts the effects of the case.
func (b *bench) notes() (n int) {
	b.Helper()
	require.NoError(b, b.Pool.QueryRow(b.ctx, "SELECT count(*) FROM authoritytest_effects WHERE scope = $1", b.scope).Scan(&n))
	return n
}

// once must succeed.
func (b *bench) once(claim authority.Claim, run authority.Run) authority.Result {
	b.Helper()
	result, err := b.Once(b.ctx, claim, run)
	require.NoError(b, err)
	return result
}

// begin begins something under a new ID, and must succeed.
func (b *bench) begin(claim authority.Claim) authority.Attempt {
	b.Helper()
	id := b.New()
	attempt, _, err := b.Begin(b.ctx, claim, b.noting("begun "+id, authority.Begun(id)), nil)
	require.NoError(b, err)
	require.NotNil(b, attempt)
	return *attempt
}

// taken requires a [authority.Taken].
func (b *bench) taken(why authority.Why, err error) *authority.Taken {
	b.Helper()
	var taken *authority.Taken
	require.ErrorAs(b, err, &taken)
	require.Equal(b, why, taken.Why)
	return taken
}

// age makes the row of the key k older.
func (b *bench) age(by time.Duration) {
	b.Helper()
	tag, err := b.Pool.Exec(b.ctx, fmt.Sprintf(`UPDATE %s SET created_at = created_at - $3::interval, completed_at = completed_at - $3::interval,
		taken_at = taken_at - $3::interval, expires_at = expires_at - $3::interval, tombstone_until = tombstone_until - $3::interval
		WHERE %s = $1 AND key = $2`, b.Table, b.Column), b.scope, "k", by)
	require.NoError(b, err)
	require.EqualValues(b, 1, tag.RowsAffected())
}

// inParallel runs f n times at once and returns what each returned.
func inParallel[T any](n int, f func(i int) T) []T {
	all, start := make([]T, n), make(chan struct{})
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			<-start
			all[i] = f(i)
		})
	}
	close(start)
	group.Wait()
	return all
}
