package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

const (
	// DefaultStream is the key of the one stream that all events go to.
	DefaultStream = "oncepay:events"

	// DefaultMaxLen bounds the stream to some 50 MB, or a quarter of an hour at a
	// hundred events per second. A consumer that is further behind needs [Replay].
	DefaultMaxLen = 100_000

	// MaxDataBytes is the largest event that is published. Ours have some hundred
	// bytes; a stream of the largest ones would fill any Redis.
	MaxDataBytes = 64 << 10

	// redisDialTimeout covers a TLS handshake within a region.
	redisDialTimeout = 500 * time.Millisecond

	// redisTimeout bounds a reply, a write and the wait for a connection. Nobody
	// waits for a background job, so it may be patient, but it has to be done
	// long before its lease ends.
	redisTimeout = time.Second
)

// ACLRules are what a server's user needs for [DefaultStream], apart from a
// login (https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/).
const ACLRules = "~" + DefaultStream + " +xadd +xreadgroup +xautoclaim +xack +xgroup|create"

// SetTimeouts makes the options of a client fit for a [RedisStream] and its
// consumers. They must have retries off: a command whose reply was lost may have
// had its effect, and to send it again is the relay's decision.
func SetTimeouts(o *redis.UniversalOptions) {
	o.DialTimeout = redisDialTimeout
	o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = redisTimeout, redisTimeout, redisTimeout
}

// RedisStream publishes events to a Redis stream, one entry each.
type RedisStream struct {
	client redis.UniversalClient
	stream string
	maxLen int64
}

var _ Publisher = (*RedisStream)(nil)

// NewRedisStream publishes to [DefaultStream] by a client without retries and
// with the timeouts of [SetTimeouts], which remains the caller's to close.
func NewRedisStream(client redis.UniversalClient) *RedisStream {
	return &RedisStream{client: client, stream: DefaultStream, maxLen: DefaultMaxLen}
}

// Publish adds the events in one round trip. To Redis all events look alike, so
// whatever it answers is its own trouble; only size and form are an event's.
func (s *RedisStream) Publish(ctx context.Context, events []Event) []error {
	errs := make([]error, len(events))
	added := make([]*redis.StringCmd, len(events))
	pipe := s.client.Pipeline()
	for i, event := range events {
		if errs[i] = check(event); errs[i] == nil {
			added[i] = pipe.XAdd(ctx, &redis.XAddArgs{Stream: s.stream, MaxLen: s.maxLen, Approx: true, Values: encode(event)})
		}
	}
	if pipe.Len() == 0 {
		return errs
	}
	_, failed := pipe.Exec(ctx) // gives the first error, and leaves each with its command
	for i, cmd := range added {
		if cmd == nil {
			continue
		}
		if err := cmd.Err(); err != nil {
			errs[i] = fmt.Errorf("%w: %w", ErrUnavailable, err)
		} else if cmd.Val() == "" { // never sent
			errs[i] = fmt.Errorf("%w: %w", ErrUnavailable, failed)
		}
	}
	return errs
}

func check(event Event) error {
	if len(event.Data) > MaxDataBytes {
		return fmt.Errorf("event has %d bytes of data, %d are allowed", len(event.Data), MaxDataBytes)
	}
	if !json.Valid(event.Data) {
		return errors.New("event's data is not JSON")
	}
	return nil
}

// encode gives the fields of a stream's entry.
func encode(e Event) []string {
	return []string{
		"event_id", e.ID.String(), "type", e.Type, "aggregate", e.Aggregate, "subject", e.Subject.String(),
		"account_id", e.AccountID.String(), "created_at", e.CreatedAt.UTC().Format(time.RFC3339Nano), "data", string(e.Data),
	}
}

// decode reads the fields of a stream's entry.
func decode(fields map[string]any) (Event, error) {
	text := func(name string) string {
		value, _ := fields[name].(string)
		return value
	}
	event := Event{Type: text("type"), Aggregate: text("aggregate"), Data: json.RawMessage(text("data"))}
	var errs [5]error
	event.ID, errs[0] = uuid.Parse(text("event_id"))
	event.Subject, errs[1] = uuid.Parse(text("subject"))
	event.AccountID, errs[2] = uuid.Parse(text("account_id"))
	event.CreatedAt, errs[3] = time.Parse(time.RFC3339Nano, text("created_at"))
	errs[4] = check(event)
	return event, errors.Join(errs[:]...)
}
