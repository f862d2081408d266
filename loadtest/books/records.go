package books

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

// Record is an answer that Redis keeps, and how long it and its row in PostgreSQL are kept from now
// on.
type Record struct {
	Name    string // the Redis key: idempotency:<timeline>:<account>:<key>
	Left    time.Duration
	HasRow  bool
	RowLeft time.Duration

	read time.Time // when Redis was asked
}

// recordPrefix begins the Redis keys of records.
const recordPrefix = "idempotency:"

// timelineSQL is PostgreSQL's timeline as records name it. Those of another one are not believed.
const timelineSQL = `SELECT lpad(to_hex(system & x'ffffffff'::bigint), 8, '0') || '.' || number
	FROM timelines ORDER BY begun_at DESC LIMIT 1`

// Records reads the answers in Redis first and then their rows, so that a row has been there for
// longer than its record.
func (r Reader) Records(ctx context.Context) ([]Record, error) {
	conn, err := pgx.Connect(ctx, r.DatabaseURL)
	if err != nil {
		return nil, fmt.Errorf("open the books: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var timeline string
	if err := conn.QueryRow(ctx, timelineSQL).Scan(&timeline); err != nil {
		return nil, fmt.Errorf("read the timeline: %w", err)
	}
	prefix := recordPrefix + timeline + ":"
	records, err := r.kept(ctx, prefix)
	if err != nil {
		return nil, err
	}
	return records, addRows(ctx, conn, prefix, records)
}

// kept reads the answers in Redis whose keys begin with a prefix.
func (r Reader) kept(ctx context.Context, prefix string) (records []Record, err error) {
	client := redis.NewClient(&redis.Options{Addr: r.RedisAddr})
	defer func() { _ = client.Close() }()
	keys := client.Scan(ctx, 0, prefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		value, err := client.Get(ctx, keys.Val()).Result()
		left, ttlErr := client.PTTL(ctx, keys.Val()).Result()
		if err != nil || ttlErr != nil || left < 0 || isInProgress(value) {
			continue // it expired meanwhile, or is no answer
		}
		records = append(records, Record{Name: keys.Val(), Left: left, read: time.Now()})
	}
	if err := keys.Err(); err != nil {
		return nil, fmt.Errorf("read Redis's records: %w", err)
	}
	return records, nil
}

func isInProgress(record string) bool {
	return strings.Contains(firstLine(record), `"status":"InProgress"`)
}

func addRows(ctx context.Context, conn *pgx.Conn, prefix string, records []Record) error {
	asked := time.Now()
	// A tombstone is no longer an answer: its time is up.
	rows, err := conn.Query(ctx, `SELECT $1 || account_id || ':' || key,
		CASE WHEN status IN ('completed', 'failed') THEN extract(epoch FROM expires_at - now())::float8 ELSE 0 END
		FROM idempotency_keys WHERE status NOT IN ('in_progress', 'refused')`, prefix)
	if err != nil {
		return fmt.Errorf("read the rows of records: %w", err)
	}
	left := map[string]time.Duration{}
	var name string
	var seconds float64
	_, err = pgx.ForEachRow(rows, []any{&name, &seconds}, func() error {
		left[name] = time.Duration(seconds * float64(time.Second))
		return nil
	})
	for i := range records {
		row, ok := left[records[i].Name]
		records[i].RowLeft, records[i].HasRow = row, ok
		records[i].Left -= asked.Sub(records[i].read) // reading thousands takes seconds on a busy machine
	}
	if err != nil {
		return fmt.Errorf("read the rows of records: %w", err)
	}
	return nil
}
