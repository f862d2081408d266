package books

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// stream is where events are published (`oncepay:events`, see the outbox).
const stream = "oncepay:events"

// Stream reads the event stream as it is now.
func (r Reader) Stream(ctx context.Context) ([]string, error) {
	client := redis.NewClient(&redis.Options{Addr: r.RedisAddr})
	defer func() { _ = client.Close() }()
	return readStream(ctx, client)
}

func readStream(ctx context.Context, client *redis.Client) ([]string, error) {
	messages, err := client.XRange(ctx, stream, "-", "+").Result()
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
	client := redis.NewClient(&redis.Options{Addr: r.RedisAddr})
	defer func() { _ = client.Close() }()
	last, err := readStream(ctx, client)
	if err != nil {
		return err
	}
	b.Streams = append(slices.Clone(r.Lost), Stream{Since: r.Since, IDs: last})
	keys := client.Scan(ctx, 0, recordPrefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		record, err := client.Get(ctx, keys.Val()).Result()
		if err == nil && isInProgress(record) {
			b.Pending = append(b.Pending, keys.Val())
		}
	}
	if err := keys.Err(); err != nil {
		return fmt.Errorf("read Redis's records: %w", err)
	}
	return nil
}

func firstLine(record string) string {
	line, _, _ := strings.Cut(record, "\n")
	return line
}
