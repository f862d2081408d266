package authority

import (
	"regexp"
	"strings"
)

// The default names; [WithTable] replaces them.
const (
	DefaultTable = "idempotency_keys"
	DefaultScope = "scope"
)

// plainName matches names that need no quotes, and leave room for the suffixes of indexes and
// constraints within PostgreSQL's 63 characters.
var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)

func isPlain(name string) bool { return plainName.MatchString(name) }

// statements are those of one table.
type statements struct {
	probe, fence, claim, finish, get, takeOver  string
	due, held, putOff, hold, find, purge, count string
}

// newStatements fills the templates. In them, KEYS is the table and SCOPE its column of scopes. The
// first line of a statement names it, for those who read traces.
func newStatements(table, scope string) statements {
	names := strings.NewReplacer("KEYS", table, "SCOPE", scope)
	return statements{
		probe: names.Replace(probeSQL + limits), fence: names.Replace(fenceSQL + limits), claim: names.Replace(claimSQL),
		finish: names.Replace(finishSQL), get: names.Replace(getSQL), takeOver: names.Replace(takeOverSQL),
		due: names.Replace(dueSQL), held: names.Replace(heldSQL), putOff: names.Replace(putOffSQL),
		hold: names.Replace(holdSQL), find: names.Replace(findSQL), purge: names.Replace(purgeSQL), count: names.Replace(countSQL),
	}
}

// Each statement sees what was committed before it, so a row that is read after a lock was waited
// for is up to date. Locks and constraints do the rest.
const beginSQL = "begin isolation level read committed read write"

// limits ends the look that opens a transaction. It sets the limits that the session does not have:
// behind a pooler that shares its sessions among transactions, a session has none. PostgreSQL
// executes it although nobody reads its columns, because set_config is volatile.
const limits = `
FROM (SELECT set_config('idle_in_transaction_session_timeout',
		coalesce(nullif(current_setting('idle_in_transaction_session_timeout'), '0'), '2s'), true),
	set_config('lock_timeout', coalesce(nullif(current_setting('lock_timeout'), '0'), '3s'), true),
	set_config('statement_timeout', coalesce(nullif(current_setting('statement_timeout'), '0'), '4s'), true)) AS limits`

// A transaction opens with one of these or with fenceSQL, which return the database's clock and
// whether the transaction may go on. They save work and decide nothing: the claim and the
// settlement do. The other statements are beside the methods that send them.
const (
	clockSQL = `SELECT now(), true` + limits
	// probeSQL does not look for a refusal of a newer attempt.
	probeSQL = `-- name: ProbeKey :one
SELECT now(), NOT EXISTS (SELECT FROM KEYS k WHERE SCOPE = $1 AND key = $2 AND status <> 'refused'
	AND (status = 'in_progress' OR greatest(expires_at, tombstone_until) > now()))`
)
