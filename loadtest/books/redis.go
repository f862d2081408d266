package books

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

const (
	// EventStream is where events are published (see the outbox).
	EventStream = "oncepay:events"
	// recordPrefix begins the Redis keys of records.
	recordPrefix = "idempotency:"
)

// Stream reads the event stream as it is now.
func (r Reader) Stream(ctx context.Context) ([]string, error) {
	client := redis.NewClient(&redis.Options{Addr: r.RedisAddr})
	defer func() { _ = client.Close() }()
	messages, err := client.XRange(ctx, EventStream, "-", "+").Result()
	if err != nil {
		return nil, fmt.Errorf("read the stream: %w", err)
	}
	ids := make([]string, len(messages))
	for i, m := range messages {
		ids[i], _ = m.Values["event_id"].(string)
	}
	return ids, nil
}

// redis reads the stream, and the records that are in progress.
func (r Reader) redis(ctx context.Context, b *Books) error {
	last, err := r.Stream(ctx)
	if err != nil {
		return err
	}
	b.Streams = append(slices.Clone(r.Lost), Stream{Since: r.Since, IDs: last})
	records, err := r.records(ctx, recordPrefix)
	for _, record := range records {
		if record.inProgress {
			b.Pending = append(b.Pending, record.Name)
		}
	}
	return err
}

// Record is an answer that Redis keeps, and how long it and its row in PostgreSQL are kept from now
// on.
type Record struct {
	Name    string // the Redis key: idempotency:<timeline>:<account>:<key>
	Left    time.Duration
	HasRow  bool
	RowLeft time.Duration

	inProgress bool
	read       time.Time // when Redis was asked
}

// records reads the records whose keys begin with a prefix. One that expires meanwhile is left out.
func (r Reader) records(ctx context.Context, prefix string) (all []Record, err error) {
	client := redis.NewClient(&redis.Options{Addr: r.RedisAddr})
	defer func() { _ = client.Close() }()
	names := client.Scan(ctx, 0, prefix+"*", 1000).Iterator()
	for names.Next(ctx) {
		pipe := client.Pipeline()
		value, left := pipe.Get(ctx, names.Val()), pipe.PTTL(ctx, names.Val())
		if _, err := pipe.Exec(ctx); err == nil {
			metadata, _, _ := strings.Cut(value.Val(), "\n")
			all = append(all, Record{Name: names.Val(), Left: left.Val(), read: time.Now(), inProgress: strings.Contains(metadata, `"status":"InProgress"`)})
		}
	}
	if err := names.Err(); err != nil {
		return nil, fmt.Errorf("read Redis's records: %w", err)
	}
	return all, nil
}

const (
	// timelineSQL is PostgreSQL's timeline as records name it. Those of another one are not
	// believed.
	timelineSQL = `SELECT lpad(to_hex(system & x'ffffffff'::bigint), 8, '0') || '.' || number
		FROM timelines ORDER BY begun_at DESC LIMIT 1`
	// keptSQL is for how long rows are kept. A tombstone is no longer an answer: its time is up.
	keptSQL = `SELECT $1 || account_id || ':' || key,
		CASE WHEN status IN ('completed', 'failed') THEN extract(epoch FROM expires_at - now())::float8 ELSE 0 END
		FROM idempotency_keys WHERE status NOT IN ('in_progress', 'refused')`
)

// Records reads the answers in Redis first and then their rows, so that a row has been there for
// longer than its record.
func (r Reader) Records(ctx context.Context) (records []Record, err error) {
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
	if records, err = r.records(ctx, prefix); err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(records, func(r Record) bool { return r.inProgress || r.Left < 0 }) // which has expired meanwhile
	asked := time.Now()
	kept, left := map[string]time.Duration{}, 0.0
	var name string
	found, _ := conn.Query(ctx, keptSQL, prefix) // ForEachRow returns its error
	_, err = pgx.ForEachRow(found, []any{&name, &left}, func() error {
		kept[name] = time.Duration(left * float64(time.Second))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the rows of records: %w", err)
	}
	for i, record := range records {
		records[i].RowLeft, records[i].HasRow = kept[record.Name]
		records[i].Left -= asked.Sub(record.read) // reading thousands takes seconds on a busy machine
	}
	return records, nil
}
