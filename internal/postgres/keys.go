package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/idempotency/authority/arrival"
	"github.com/oncepay/oncepay/internal/checkout"
)

// The table of keys, and its column of scopes.
const keysTable, keysScope = "idempotency_keys", "account_id"

// claimOf is the claim of a call, without a key if the call has none. ctx is that of the request.
func (s *Store) claimOf(ctx context.Context, call checkout.Call) authority.Claim {
	c := call.Claim
	if c == nil {
		return authority.Claim{IsAbandoned: func() bool { return arrival.IsAbandoned(ctx) }}
	}
	claim := authority.Claim{Scope: call.Account.String(), Key: c.Key, Fingerprint: c.Fingerprint, Operation: c.Operation,
		TTL: c.TTL, TombstoneTTL: c.TombstoneTTL, ArrivedAt: c.ArrivedAt}
	if s.traceParent != nil {
		claim.TraceParent = s.traceParent(ctx)
	}
	return claim
}

// attemptOf is the attempt that a call holds at an operation. Its key may be used for another one
// by now.
func attemptOf[T interface{ Common() checkout.Operation }](taken checkout.Taken[T]) authority.Attempt {
	c := taken.Call.Claim
	if c == nil {
		return authority.Attempt{}
	}
	return authority.Attempt{Scope: taken.Call.Account.String(), Key: c.Key, Fingerprint: c.Fingerprint, Operation: c.Operation,
		ID: taken.Value.Common().ID.String(), Number: c.Attempt}
}

// answerOf is a result in the shop's terms, which do not look into it.
func answerOf(r authority.Result) checkout.Answer {
	return checkout.Answer{Content: r, Replayed: r.Replayed}
}

// errorOf is why a taken key leads to no answer.
func errorOf(taken *authority.Taken) *checkout.Error {
	switch taken.Why {
	case authority.Reused:
		return checkout.ErrKeyReused
	case authority.Expired:
		return checkout.ExpiredKey(taken.Resource)
	case authority.Older:
		return checkout.ErrNewerAttemptRefused
	}
	if taken.Since.IsZero() {
		return checkout.ErrKeyInProgress
	}
	return checkout.KeyInProgressSince(taken.Since)
}

// Key returns what is known of a key. See [checkout.Store].
func (s *Store) Key(ctx context.Context, account uuid.UUID, name string) (checkout.Key, error) {
	known, err := s.keys.Look(ctx, account.String(), name)
	if errors.Is(err, authority.ErrNotFound) {
		return checkout.Key{}, checkout.ErrKeyNotFound
	}
	if err != nil {
		return checkout.Key{}, translate("read an idempotency key", err)
	}
	key := checkout.Key{Key: name, State: checkout.KeyState(known.State), Operation: known.Operation, Answer: answerOf(known.Answer),
		Fingerprint: known.Fingerprint, Path: known.Answer.Resource, CreatedAt: known.CreatedAt, CompletedAt: known.CompletedAt, ExpiresAt: known.ExpiresAt}
	if known.ID != "" {
		id, err := uuid.Parse(known.ID)
		if err != nil {
			return checkout.Key{}, fmt.Errorf("read what an idempotency key began: %w", err)
		}
		key.Resource = &id
	}
	return key, nil
}

// text is a nullable text; NULL is empty.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
