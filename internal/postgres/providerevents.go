package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// A provider event settles what is processing at whichever attempt. That is the fence for all
// attempts, because no attempt settles what is settled. The operation and its key are read before
// the transaction; neither changes, except that the key may be finished.

// errDuplicate ends a transaction: the event was received before.
var errDuplicate = errors.New("the provider event was received before")

// SettleByEvent settles the operation that an event is about.
func (o operations[W, T]) SettleByEvent(ctx context.Context, id uuid.UUID, e checkout.ProviderEvent, encode checkout.Encode) (checkout.Verdict, error) {
	begun, err := read(ctx, o.store, func(ctx context.Context, q *dbsqlc.Queries) (checkout.Taken[T], error) {
		return o.find(ctx, q, id)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return o.store.RecordProviderEvent(ctx, e)
	}
	if err != nil {
		return "", translate("find what a provider event is about", err)
	}
	begun.Call.Encode = encode
	return o.store.record(ctx, begun.Call, attemptOf(begun), e, func(ctx context.Context, tx *transaction) (checkout.Verdict, authority.Outcome, error) {
		locked, settle := o.settle(ctx, tx, begun.Value)
		if err := tx.loadBegun(ctx); err != nil {
			return "", authority.Outcome{}, err
		}
		verdict := (*locked).Common().Match(e)
		if verdict != checkout.VerdictSettled {
			return verdict, authority.Outcome{}, nil
		}
		value, changes, final := settle(e.Result)
		outcome, err := conclude(ctx, tx, value, changes, final)
		return verdict, outcome, err
	})
}

// RecordProviderEvent records an event that leads to nothing. See [checkout.ProviderEventStore].
func (s *Store) RecordProviderEvent(ctx context.Context, e checkout.ProviderEvent) (checkout.Verdict, error) {
	return s.record(ctx, checkout.Call{}, authority.Attempt{}, e, func(ctx context.Context, tx *transaction) (checkout.Verdict, authority.Outcome, error) {
		return checkout.VerdictUnknown, authority.Outcome{}, tx.load(ctx)
	})
}

// record records an event and what it leads to in one transaction. The verdict is that on what was
// locked. If a key waits for the answer, it is settled at whichever attempt; if it was settled
// meanwhile, the event only confirms that.
func (s *Store) record(ctx context.Context, call checkout.Call, attempt authority.Attempt, e checkout.ProviderEvent,
	settle func(context.Context, *transaction) (checkout.Verdict, authority.Outcome, error),
) (verdict checkout.Verdict, err error) {
	run := func(ctx context.Context, tx *transaction) (outcome authority.Outcome, err error) {
		tx.insertProviderEvent(ctx, e)
		if verdict, outcome, err = settle(ctx, tx); err == nil {
			tx.setVerdict(ctx, e, verdict)
		}
		return outcome, err
	}
	_, err = s.under(call, func(run authority.Run) (authority.Result, error) {
		if call.Claim != nil {
			var taken *authority.Taken
			result, err := s.keys.SettleAny(ctx, attempt, run)
			if !errors.As(err, &taken) && !errors.Is(err, authority.ErrUnknown) && !result.Replayed {
				return result, err
			}
		}
		return s.keyless(ctx)(run)
	}, run)
	if errors.Is(err, errDuplicate) {
		return checkout.VerdictDuplicate, nil
	}
	return verdict, err
}

// insertProviderEvent queues the record of an event. Loading fails if it was received before.
func (tx *transaction) insertProviderEvent(ctx context.Context, e checkout.ProviderEvent) {
	query := tx.InsertProviderEvent(ctx, []dbsqlc.InsertProviderEventParams{{EventID: e.ID, Type: e.Type, Subject: e.Subject}})
	tx.AfterSend(func() error {
		_, err := one(query)
		if errors.Is(err, pgx.ErrNoRows) {
			return errDuplicate
		}
		return translate("record a provider event", err)
	})
}

// setVerdict queues the verdict on an event that was recorded.
func (tx *transaction) setVerdict(ctx context.Context, e checkout.ProviderEvent, verdict checkout.Verdict) {
	tx.SetProviderEventVerdict(ctx, []dbsqlc.SetProviderEventVerdictParams{{EventID: e.ID, Verdict: string(verdict)}})
}

// waitingCall is the call that began an operation. It has no claim when no key waits for an answer.
func waitingCall(account uuid.UUID, key *string, fingerprint []byte, operation *string) checkout.Call {
	if key == nil {
		return checkout.Call{Account: account}
	}
	return checkout.Call{Account: account, Claim: &checkout.Claim{Key: *key, Fingerprint: [32]byte(fingerprint), Operation: *operation}}
}
