package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/internal/checkout"
)

// rendered makes the pure function that a command's reply comes from. location
// is where the new resource can be read, or "". A final error is the problem
// that fail would write; it keeps the ID of the request that it first answered.
func rendered[T, Wire any](ctx context.Context, status int, wire func(T) Wire, location func(T) string) checkout.Render[T] {
	requestID := RequestID(ctx)
	return func(value T, final *checkout.Error) checkout.Reply {
		if final != nil {
			p := problemOf(final)
			return checkout.Reply{Status: p.status, Header: map[string]string{"Content-Type": problemType}, Body: p.body(requestID)}
		}
		header := map[string]string{"Content-Type": "application/json"}
		if path := location(value); path != "" {
			header["Location"] = path
		}
		return checkout.Reply{Status: status, Header: header, Body: encode(wire(value))}
	}
}

// created answers 201 with the resource, and changed 200.
func created[T, Wire any](ctx context.Context, wire func(T) Wire, location func(T) string) checkout.Render[T] {
	return rendered(ctx, http.StatusCreated, wire, location)
}

func changed[T, Wire any](ctx context.Context, wire func(T) Wire) checkout.Render[T] {
	return rendered(ctx, http.StatusOK, wire, nowhere[T])
}

func nowhere[T any](T) string { return "" }

func at(collection string, id uuid.UUID) string {
	return basePath + "/" + collection + "/" + id.String()
}

// instant is a time as the API shows it: in UTC, and no finer than PostgreSQL
// keeps it, so that the first answer and a later GET show the same.
func instant(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func valueOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func wireMoney(m checkout.Money) api.Money { return api.Money{Amount: m.Amount, Currency: m.Currency} }

func wireBalance(m checkout.Money) api.Balance {
	return api.Balance{Amount: m.Amount, Currency: m.Currency}
}

func moneyOf(m api.Money) checkout.Money {
	return checkout.Money{Amount: m.Amount, Currency: m.Currency}
}

func mapped[T, Wire any](values []T, wire func(T) Wire) []Wire {
	out := make([]Wire, len(values)) // never nil: an empty list is [] and not null
	for i, value := range values {
		out[i] = wire(value)
	}
	return out
}
