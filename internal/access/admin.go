package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
)

// prefixLength of an API key is shown: enough to tell keys apart, and too little to guess the rest,
// which has 90 bits.
const prefixLength = len("sk_live_") + 8

// NewAPIKey makes a key. It is shown once: only its hash and its prefix are kept.
func NewAPIKey() (text, prefix string, hash Hash) {
	text = "sk_live_" + rand.Text()
	return text, text[:prefixLength], HashOf(text)
}

// Issue says what a new key may do.
type Issue struct {
	Account  uuid.UUID
	ReadOnly bool
	Expires  *time.Time // nil: never
}

// Issued is a key as people see it. Times are nil where there is none.
type Issued struct {
	Prefix                      string // empty: it was added by SQL
	Account                     uuid.UUID
	Name                        string // of the account
	ReadOnly                    bool
	Created                     time.Time
	Expires, Revoked, Suspended *time.Time
}

// Admin changes accounts and keys. A method that finds nothing to change returns false. Replicas
// notice within seconds.
type Admin interface {
	AddAccount(ctx context.Context, id uuid.UUID, name string) error
	SuspendAccount(ctx context.Context, id uuid.UUID, suspended bool) (found bool, err error)
	IssueAPIKey(ctx context.Context, prefix string, hash Hash, issue Issue) (found bool, err error)
	RevokeAPIKey(ctx context.Context, prefix string) (found bool, err error)
	// RotateAPIKey adds a key with the rights and the end of the old one, which ends after the
	// grace. It finds no key that has ended.
	RotateAPIKey(ctx context.Context, old, prefix string, hash Hash, grace time.Duration) (found bool, err error)
	IssuedAPIKeys(ctx context.Context) ([]Issued, error)
}

// List writes a table of all keys.
func List(ctx context.Context, admin Admin, w io.Writer) error {
	keys, err := admin.IssuedAPIKeys(ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "PREFIX\tACCOUNT\tNAME\tMAY\tCREATED\tSTATE")
	for _, k := range keys {
		may := "write"
		if k.ReadOnly {
			may = "read"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", cmp.Or(k.Prefix, "(unknown)"), k.Account, k.Name, may, day(k.Created), k.state(time.Now()))
	}
	return table.Flush()
}

func (k Issued) state(now time.Time) string {
	switch {
	case k.Revoked != nil:
		return "revoked " + day(*k.Revoked)
	case k.Expires != nil && !now.Before(*k.Expires):
		return "expired " + day(*k.Expires)
	case k.Suspended != nil:
		return "account suspended " + day(*k.Suspended)
	case k.Expires != nil:
		return "valid until " + k.Expires.UTC().Format(time.RFC3339)
	}
	return "valid"
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
