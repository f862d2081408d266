package books

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/shop"
)

// Reader reads the Books from the stores themselves.
type Reader struct {
	DatabaseURL, RedisAddr, ProviderURL string
	MailsURL                            string                      // of the mail sink; empty: mails are not read
	APIKeys                             []string                    // of the accounts that the campaign uses
	Opening                             map[string]map[string]int64 // stock at the beginning, by API key and SKU
	Lost                                []Stream                    // the streams that Redis has lost, as they were before
	Since                               time.Time                   // the last loss, or the campaign's beginning
}

//go:embed books.sql
var booksSQL string

// Await reads every second until the books are as they should be in the end, or the time for that
// is over.
func (r Reader) Await(ctx context.Context, within time.Duration, done func(Books) bool) (Books, error) {
	for deadline := time.Now().Add(within); ; _ = wait.Pause(ctx, time.Second) {
		held, err := r.Read(ctx)
		if err != nil || done(held) || time.Now().After(deadline) {
			return held, err
		}
	}
}

// Read collects what PostgreSQL holds at one moment, and the rest right after.
func (r Reader) Read(ctx context.Context) (Books, error) {
	var read struct {
		Books

		Accounts []string // that exist, by their API keys
	}
	if err := r.Query(ctx, &read, booksSQL, r.APIKeys, r.Opening); err != nil {
		return Books{}, err
	}
	for _, key := range r.APIKeys {
		if !slices.Contains(read.Accounts, key) {
			return Books{}, fmt.Errorf("account of %s: no such API key", key)
		}
	}
	b, provider := read.Books, shop.API{BaseURL: r.ProviderURL, HTTP: http.DefaultClient}
	for what, list := range map[string]*[]Charge{"charges": &b.Charges, "refunds": &b.ProviderRefunds} {
		if err := provider.Get(ctx, "/"+what, &struct{ Data *[]Charge }{list}); err != nil {
			return b, fmt.Errorf("list the provider's %s: %w", what, err)
		}
	}
	var err error
	if b.Mails, err = r.mails(ctx); err != nil {
		return b, err
	}
	last, err := r.Stream(ctx)
	if err != nil {
		return b, err
	}
	b.Streams = append(slices.Clone(r.Lost), Stream{Since: r.Since, IDs: last})
	b.Pending, _, err = r.records(ctx)
	return b, err
}

// Query reads the only column of a row from PostgreSQL, such as JSON.
func (r Reader) Query(ctx context.Context, into any, sql string, args ...any) error {
	conn, err := pgx.Connect(ctx, r.DatabaseURL)
	if err != nil {
		return fmt.Errorf("open the books: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := conn.QueryRow(ctx, sql, args...).Scan(into); err != nil {
		return fmt.Errorf("read the books: %w", err)
	}
	return nil
}

// ReplayEvents has the provider send the events of an order's charges and refunds once more, and
// fails unless there are some and each is accepted.
func ReplayEvents(ctx context.Context, base, order string) error {
	var sent struct{ Data []struct{ Status int } }
	err := shop.Ask(ctx, http.MethodPost, base+"/v1/webhooks/replay?reference="+url.QueryEscape(order), "", &sent)
	refused := func(event struct{ Status int }) bool { return event.Status/100 != 2 }
	if err == nil && (len(sent.Data) == 0 || slices.ContainsFunc(sent.Data, refused)) {
		err = fmt.Errorf("answered %v", sent.Data)
	}
	if err != nil {
		return fmt.Errorf("replay the events of order %s: %w", order, err)
	}
	return nil
}

// mails counts the mails that the server has, by the event in their Message-ID; nil: none is asked.
func (r Reader) mails(ctx context.Context) (map[string]int, error) {
	var list struct {
		Mails []struct {
			MessageID string `json:"message_id"`
		}
	}
	if r.MailsURL == "" {
		return nil, nil
	}
	if err := shop.Ask(ctx, http.MethodGet, r.MailsURL+"/v1/mails?limit=0", "", &list); err != nil {
		return nil, fmt.Errorf("list the mails: %w", err)
	}
	count := map[string]int{}
	for _, mail := range list.Mails {
		event, _, _ := strings.Cut(mail.MessageID, "@")
		count[event]++
	}
	return count, nil
}

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

// Record is an answer that Redis keeps, and until when it and its row in PostgreSQL are kept.
type Record struct {
	Name                string // the Redis key: idempotency:<timeline>:<account>:<key>
	HasRow              bool
	Expires, RowExpires time.Time
}

//go:embed records.sql
var recordsSQL string

// Records reads the answers in Redis first and then their rows, so that a row has been there for
// longer than its record. It leaves out records that expire meanwhile.
func (r Reader) Records(ctx context.Context) (records []Record, err error) {
	_, answers, err := r.records(ctx)
	if err != nil {
		return nil, err
	}
	err = r.Query(ctx, &records, recordsSQL, slices.Collect(maps.Keys(answers)))
	for i, record := range records {
		records[i].Expires = answers[record.Name]
	}
	return slices.DeleteFunc(records, func(r Record) bool { return time.Now().After(r.Expires) }), err
}
