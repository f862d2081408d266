package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5/middleware"
	"github.com/google/uuid"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/admission"
	"github.com/oncepay/oncepay/internal/checkout"
)

// recordBytes is what a record takes in the store besides the answer's body and its key: metadata,
// kept headers, and what Redis adds. TestBudget_CountsWhatRedisKeeps compares.
const recordBytes = 1024

// overBudget is the refusal of a request whose answer would be one too many.
func overBudget(wait time.Duration) problem {
	return problem{status: http.StatusTooManyRequests, code: "budget_used_up", retryAfter: wait,
		detail: "As many answers are kept for this account as it may have, so this request was not executed. Some are forgotten after the time in Retry-After."}
}

// limitKept refuses a new key of an account whose budget is used up, before the key is acquired. A
// key that is known in the store or by the authority passes: a retry is always safe. A PUT without
// a key is refused, too. A product that it creates counts as an answer does, for as long: nothing
// else bounds the rows that an account makes without keys.
func (s *Server) limitKept(next http.Handler) http.Handler {
	if s.cfg.Budget == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		account := exchangeOf(r.Context()).account
		wait, spent := s.cfg.Budget.Spent(account)
		keyless := r.Method == http.MethodPut && r.Header.Get(idempotency.HeaderKey) == ""
		if spent && (keyless || s.isNewKey(r)) {
			if s.cfg.Budget.Refuse(account) {
				s.log.WarnContext(r.Context(), "budget used up: new keys of the account get 429", "account", account, "free_in", wait.String())
			}
			s.fail(w, r, overBudget(wait))
			return
		}
		if !keyless {
			next.ServeHTTP(w, r)
			return
		}
		out := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		next.ServeHTTP(out, r)
		if out.Status() == http.StatusCreated {
			s.cfg.Budget.Keep(account, recordBytes, s.cfg.OrderTTL)
		}
	})
}

// isNewKey reports whether a request would begin to use its key.
func (s *Server) isNewKey(r *http.Request) bool {
	key, present, problem := idempotency.ParseKey(r.Header)
	if !present || problem != nil || s.policyOf(r) == nil || s.lookAtKey(r.Context(), r) != admission.Unknown {
		return false
	}
	_, err := s.cfg.Service.Key(r.Context(), exchangeOf(r.Context()).account, key)
	return errors.Is(err, checkout.ErrKeyNotFound)
}

// countedStore counts what it keeps. A wrapper offers what the store offers.
type countedStore struct {
	idempotency.Store
	budget *admission.Budget
}

var (
	_ idempotency.Watcher  = countedStore{}
	_ idempotency.Reader   = countedStore{}
	_ idempotency.Repairer = countedStore{}
)

// Complete implements [idempotency.Store].
func (c countedStore) Complete(ctx context.Context, done idempotency.Record, ttl time.Duration) error {
	if err := c.Store.Complete(ctx, done, ttl); err != nil {
		return err
	}
	if account, err := uuid.Parse(done.Scope); err == nil { // a scope is an account
		c.budget.Keep(account, recordBytes+len(done.Key)+len(done.Response.Body), ttl)
	}
	return nil
}

// Lookup implements [idempotency.Reader].
func (c countedStore) Lookup(ctx context.Context, scope, key string) (*idempotency.Record, error) {
	return idempotency.Lookup(ctx, c.Store, scope, key)
}

// Repair implements [idempotency.Repairer].
func (c countedStore) Repair(ctx context.Context, pending idempotency.Record, lease time.Duration) (*idempotency.Record, error) {
	return idempotency.Repair(ctx, c.Store, pending, lease)
}

// Watch implements [idempotency.Watcher].
func (c countedStore) Watch(scope, key string) (changed <-chan struct{}, stop func()) {
	return idempotency.Watch(c.Store, scope, key)
}
