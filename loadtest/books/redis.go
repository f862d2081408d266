package books

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// EventStream is where events are published (see the outbox).
const EventStream = "oncepay:events"

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

// records reads the records: those in progress, and when the answers expire, by their names. One
// that expires meanwhile is left out.
func (r Reader) records(ctx context.Context) (inProgress []string, answers map[string]time.Time, err error) {
	client := redis.NewClient(&redis.Options{Addr: r.RedisAddr})
	defer func() { _ = client.Close() }()
	answers = map[string]time.Time{}
	names := client.Scan(ctx, 0, "idempotency:*", 1000).Iterator()
	for names.Next(ctx) {
		pipe := client.Pipeline()
		value, expires := pipe.Get(ctx, names.Val()), pipe.PExpireTime(ctx, names.Val())
		if _, err := pipe.Exec(ctx); err != nil {
			continue
		}
		if metadata, _, _ := strings.Cut(value.Val(), "\n"); strings.Contains(metadata, `"status":"InProgress"`) {
			inProgress = append(inProgress, names.Val())
		} else {
			answers[names.Val()] = time.UnixMilli(expires.Val().Milliseconds())
		}
	}
	if err := names.Err(); err != nil {
		return nil, nil, fmt.Errorf("read Redis's records: %w", err)
	}
	return inProgress, answers, nil
}

// Record is an answer that Redis keeps, and how long it and its row in PostgreSQL are kept from now
// on.
type Record struct {
	Name    string // the Redis key: idempotency:<timeline>:<account>:<key>
	Left    time.Duration
	HasRow  bool
	RowLeft time.Duration
}

//go:embed records.sql
var recordsSQL string

// Records reads the answers in Redis first and then their rows, so that a row has been there for
// longer than its record.
func (r Reader) Records(ctx context.Context) (records []Record, err error) {
	_, answers, err := r.records(ctx)
	if err != nil {
		return nil, err
	}
	var believed []struct {
		Name    string
		HasRow  bool
		Expires time.Time
	}
	err = r.Query(ctx, &believed, recordsSQL, slices.Collect(maps.Keys(answers)))
	for _, row := range believed {
		if left := time.Until(answers[row.Name]); left >= 0 { // otherwise it has expired meanwhile
			records = append(records, Record{row.Name, left, row.HasRow, time.Until(row.Expires)})
		}
	}
	return records, err
}
