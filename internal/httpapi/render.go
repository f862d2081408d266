package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/internal/checkout"
)

// render makes the answer to a value of type T, or to a final error.
type render[T any] func(T, *checkout.Error) authority.Answer

// encode binds a render to a call, whose decision returns a T.
func (r render[T]) encode(value any, final *checkout.Error) any {
	if final != nil {
		var none T
		return r(none, final)
	}
	return r(value.(T), nil)
}

// rendered returns the pure function that renders a command's answer: the resource at its path, or
// a final error as fail would write it, with the ID of the request that it first answered.
func rendered[T, Wire any](ctx context.Context, status int, wire func(T) Wire, path func(T) string) render[T] {
	requestID := RequestID(ctx)
	return func(value T, final *checkout.Error) authority.Answer {
		if final != nil {
			p := problemOf(final)
			return authority.Answer{Status: p.status, Header: map[string]string{"Content-Type": problemType}, Body: p.body(requestID)}
		}
		return authority.Answer{Status: status, Header: map[string]string{"Content-Type": "application/json"},
			Body: encode(wire(value)), Resource: path(value)}
	}
}

// created answers 201 with a new resource, which can be read at its path.
func created[T, Wire any](ctx context.Context, wire func(T) Wire, path func(T) string) render[T] {
	first := rendered(ctx, http.StatusCreated, wire, path)
	return func(value T, final *checkout.Error) authority.Answer {
		answer := first(value, final)
		if final == nil {
			answer.Header["Location"] = answer.Resource
		}
		return answer
	}
}

// partOf answers 201 with what has no URL of its own. The path is that of the resource it changed.
func partOf[T, Wire any](ctx context.Context, wire func(T) Wire, path func(T) string) render[T] {
	return rendered(ctx, http.StatusCreated, wire, path)
}

// changed answers 200 with a resource.
func changed[T, Wire any](ctx context.Context, wire func(T) Wire, path func(T) string) render[T] {
	return rendered(ctx, http.StatusOK, wire, path)
}

func at(collection string, id uuid.UUID) string {
	return basePath + "/" + collection + "/" + id.String()
}

// instant is a time as the API shows it: in UTC, and no finer than PostgreSQL keeps it, so that the
// first answer and a later GET show the same.
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
