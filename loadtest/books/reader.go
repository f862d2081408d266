package books

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

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
	var err error
	if b.Charges, err = providerList(ctx, provider, "charges"); err != nil {
		return b, err
	}
	if b.ProviderRefunds, err = providerList(ctx, provider, "refunds"); err != nil {
		return b, err
	}
	if r.MailsURL != "" {
		if b.Mails, err = mails(ctx, r.MailsURL); err != nil {
			return b, err
		}
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
