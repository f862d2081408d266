package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Timeline names the history of commits that a server continues. A standby that is promoted and a
// backup that is restored begin another one, which may lack the last commits of the one before
// (PostgreSQL manual, "Timelines").
type Timeline struct {
	System int64 // the system identifier, which initdb draws
	Number int32 // grows with each promotion
}

// String is short, and differs for different timelines of one deployment.
func (t Timeline) String() string { return fmt.Sprintf("%08x.%d", t.System&math.MaxUint32, t.Number) }

// Beginning says that this process was the first to meet a timeline, or one that begins anew.
type Beginning struct {
	Timeline
	Published int64 // the relay's cursor then: events after it that are in the stream may be lost
}

// positionGap is between the positions of two timelines, so that none is used twice: more events
// than any standby is behind, and far less than a bigint holds.
const positionGap = 1_000_000_000

// timelineSQL fails on a server that is still a standby, which is of no use to us. It also sets the
// limits of the session (PostgreSQL manual, "Client Connection Defaults"): a pooler refuses them as
// parameters of a connection's start. Behind one that shares its sessions among transactions they
// are lost, and those of the authority's transactions count.
var timelineSQL = fmt.Sprintf(`SELECT system_identifier, %s, to_regclass('timelines') IS NOT NULL FROM pg_control_system(), (SELECT
	set_config('idle_in_transaction_session_timeout', '%d', false), set_config('lock_timeout', '%d', false),
	set_config('statement_timeout', '%d', false)) AS session`, timelineNumber,
	idleInTransactionTimeout.Milliseconds(), lockTimeout.Milliseconds(), statementTimeout.Milliseconds())

const (
	timelineNumber = "('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer"

	// beginTimelineSQL is one statement: whoever finds the row finds the positions moved, too. Who
	// comes at the same time waits for it. A timeline whose sequence is behind the cursor begins
	// anew, as after a restore without sequences: the relay would not publish positions that the
	// cursor has passed.
	beginTimelineSQL = `WITH begun AS (
		INSERT INTO timelines (system, number, published) SELECT $1, $2, position FROM outbox_cursor
		ON CONFLICT (system, number) DO UPDATE SET begun_at = now(), published = EXCLUDED.published
			WHERE coalesce(pg_sequence_last_value('outbox_id_seq'), 0) < EXCLUDED.published
		RETURNING published
	) SELECT published, setval('outbox_id_seq', greatest(coalesce(pg_sequence_last_value('outbox_id_seq'), 0), published) + $3) FROM begun`
)

// timelines follows the timeline of a pool's connections. A connection is looked at before it is
// used. Behind a pooler the server of a connection may change later: LookAtTimeline notices it, and
// InsertEvent refuses a timeline that is not noted.
type timelines struct {
	noted  atomic.Pointer[Timeline]
	follow func(Timeline)
	begin  func(Beginning)
}

// LookAtTimeline reads the timeline and notes it, as each new connection does.
func LookAtTimeline(ctx context.Context, pool *pgxpool.Pool) error {
	ctx, cancel := context.WithTimeout(ctx, acquireTimeout)
	defer cancel()
	err := pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error { return pool.Config().AfterConnect(ctx, conn.Conn()) })
	return translate("look at the timeline", err)
}

func (t *timelines) afterConnect(ctx context.Context, conn *pgx.Conn) error {
	var now Timeline
	var migrated bool
	// The simple protocol saves round trips: each connection asks once.
	err := conn.QueryRow(ctx, timelineSQL, pgx.QueryExecModeSimpleProtocol).Scan(&now.System, &now.Number, &migrated)
	if err != nil {
		return fmt.Errorf("read the timeline: %w", err)
	}
	if noted := t.noted.Load(); noted != nil && *noted == now {
		return nil
	}
	if migrated {
		if err := t.note(ctx, conn, now); err != nil {
			return fmt.Errorf("note timeline %s: %w", now, err)
		}
		t.noted.Store(&now)
	}
	if t.follow != nil {
		t.follow(now)
	}
	return nil
}

// note writes a timeline down, unless it is known and the positions are ahead of the cursor.
func (t *timelines) note(ctx context.Context, conn *pgx.Conn, now Timeline) error {
	begun := Beginning{Timeline: now}
	var position int64
	// A named statement could meet its own name behind a pooler, before authority.CheckPool has
	// refused that.
	err := conn.QueryRow(ctx, beginTimelineSQL, pgx.QueryExecModeExec, now.System, now.Number, int64(positionGap)).Scan(&begun.Published, &position)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err == nil && t.begin != nil {
		t.begin(begun)
	}
	return err
}
