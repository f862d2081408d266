package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

const (
	// DefaultStream is the key of the one stream that all events go to.
	DefaultStream = "oncepay:events"

	// DefaultMaxLen bounds the stream to some 50 MB. At this length the relay pauses, and events
	// wait in the outbox. When consumers keep up, the stream has half of it.
	DefaultMaxLen = 100_000

	// redisDialTimeout covers a TLS handshake within a region.
	redisDialTimeout = 500 * time.Millisecond

	// redisTimeout bounds a reply, a write and the wait for a connection. No client waits for a
	// background job, so it may be patient, but it has to be done long before its lease ends.
	redisTimeout = time.Second
)

// ACLRules are what a server's user needs for [DefaultStream], apart from a login
// (https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/).
const ACLRules = "~" + DefaultStream + " +multi +exec +xadd +xreadgroup +xautoclaim +xack +xgroup|create" +
	" +xinfo|stream +xinfo|groups +xpending +xtrim +xrevrange"

// SetTimeouts makes the options of a client fit for a [RedisStream] and its consumers. They must
// have retries off: a command whose reply was lost may have had its effect, and to send it again is
// the relay's decision.
func SetTimeouts(o *redis.UniversalOptions) {
	o.DialTimeout = redisDialTimeout
	o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = redisTimeout, redisTimeout, redisTimeout
}

// RedisStream is a Redis stream with one entry per event.
type RedisStream struct {
	client redis.UniversalClient
	stream string
}

var _ Stream = (*RedisStream)(nil)

// NewRedisStream publishes to [DefaultStream] by a client without retries and with the timeouts of
// [SetTimeouts], which remains the caller's to close.
func NewRedisStream(client redis.UniversalClient) *RedisStream {
	return &RedisStream{client: client, stream: DefaultStream}
}

// Publish implements [Publisher] in one round trip. In a transaction, a consumer that waits is
// given all events at once.
func (s *RedisStream) Publish(ctx context.Context, events []Event) error {
	_, err := s.client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, event := range events {
			pipe.XAdd(ctx, &redis.XAddArgs{Stream: s.stream, Values: encode(event)})
		}
		return nil
	})
	return err
}

// State implements [Stream] in two round trips.
func (s *RedisStream) State(ctx context.Context) (StreamState, error) {
	state := StreamState{Open: map[string]EntryID{}}
	pipe := s.client.Pipeline()
	info, groups := pipe.XInfoStream(ctx, s.stream), pipe.XInfoGroups(ctx, s.stream)
	if _, err := pipe.Exec(ctx); err != nil {
		if strings.Contains(err.Error(), "no such key") {
			return state, nil
		}
		return state, err
	}
	state.Exists, state.Length = true, info.Val().Length
	var err error
	if state.Last, err = parseEntryID(info.Val().LastGeneratedID); err != nil {
		return state, err
	}
	for _, group := range groups.Val() {
		if state.Open[group.Name], err = s.open(ctx, group); err != nil {
			return state, err
		}
	}
	return state, nil
}

// open is the ID before which a group has handled everything: that of its oldest pending entry, or
// what comes after the last one that it was given.
func (s *RedisStream) open(ctx context.Context, group redis.XInfoGroup) (EntryID, error) {
	given, err := parseEntryID(group.LastDeliveredID)
	if err != nil || group.Pending == 0 {
		return given.Next(), err
	}
	pending, err := s.client.XPending(ctx, s.stream, group.Name).Result()
	if err != nil || pending.Count == 0 {
		return given.Next(), err
	}
	oldest, err := parseEntryID(pending.Lower)
	if given.Before(oldest) {
		oldest = given.Next()
	}
	return oldest, err
}

// Trim implements [Stream]. It leaves a little more than it has to, as Redis removes whole nodes of
// its tree.
func (s *RedisStream) Trim(ctx context.Context, before EntryID, limit int64) error {
	return s.client.XTrimMinIDApprox(ctx, s.stream, before.String(), limit).Err()
}

// Newest implements [NewestReader]. It skips what is no event.
func (s *RedisStream) Newest(ctx context.Context, before EntryID, limit int64) (events []Event, next EntryID, err error) {
	end := "+"
	if before != (EntryID{}) {
		end = "(" + before.String()
	}
	entries, err := s.client.XRevRangeN(ctx, s.stream, end, "-", limit).Result()
	if err != nil || len(entries) == 0 {
		return nil, EntryID{}, err
	}
	for _, entry := range entries {
		if event, err := decode(entry.Values); err == nil {
			events = append(events, event)
		}
	}
	next, err = parseEntryID(entries[len(entries)-1].ID)
	return events, next, err
}

// encode returns the fields of a stream's entry.
func encode(e Event) []string {
	return []string{
		"event_id", e.ID.String(), "type", e.Type, "aggregate", e.Aggregate, "subject", e.Subject.String(),
		"account_id", e.AccountID.String(), "created_at", e.CreatedAt.UTC().Format(time.RFC3339Nano), "data", string(e.Data),
		"position", strconv.FormatInt(e.Position, 10),
	}
}

// decode reads the fields of a stream's entry.
func decode(fields map[string]any) (Event, error) {
	text := func(name string) string {
		value, _ := fields[name].(string)
		return value
	}
	event := Event{Type: text("type"), Aggregate: text("aggregate"), Data: json.RawMessage(text("data"))}
	var errs [6]error
	event.ID, errs[0] = uuid.Parse(text("event_id"))
	event.Subject, errs[1] = uuid.Parse(text("subject"))
	event.AccountID, errs[2] = uuid.Parse(text("account_id"))
	event.CreatedAt, errs[3] = time.Parse(time.RFC3339Nano, text("created_at"))
	event.Position, errs[4] = strconv.ParseInt(text("position"), 10, 64)
	if !json.Valid(event.Data) {
		errs[5] = errors.New("event's data is not JSON")
	}
	return event, errors.Join(errs[:]...)
}
