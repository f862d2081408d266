package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// A provider event settles what is processing at whichever attempt. That is the fence for all
// attempts, because no attempt settles what is settled. The operation and its key are read before
// the transaction; neither changes, except that the key may be finished.

// SettleByEvent settles the operation that an event is about.
func (o operations[W, T]) SettleByEvent(ctx context.Context, id uuid.UUID, e checkout.ProviderEvent, render checkout.Render[T]) (checkout.Verdict, error) {
	begun, err := read(ctx, o.store, func(ctx context.Context, q *dbsqlc.Queries) (checkout.Taken[T], error) {
		return o.find(ctx, q, id)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return o.store.RecordProviderEvent(ctx, e)
	}
	if err != nil {
		return "", translate("find what a provider event is about", err)
	}
	return record(ctx, o.store, begun.Call, e, render, func(ctx context.Context, tx *transaction) (func() checkout.Verdict, settlement[T]) {
		locked, settle := o.settle(ctx, tx, begun.Value)
		return func() checkout.Verdict { return (*locked).Common().Match(e) }, settle
	})
}

// RecordProviderEvent records an event that leads to nothing. See [checkout.ProviderEventStore].
func (s *Store) RecordProviderEvent(ctx context.Context, e checkout.ProviderEvent) (checkout.Verdict, error) {
	return record(ctx, s, checkout.Call{}, e, nil, func(context.Context, *transaction) (func() checkout.Verdict, settlement[struct{}]) {
		return func() checkout.Verdict { return checkout.VerdictUnknown }, nil
	})
}

// record records an event and settles what it is about in one transaction. The verdict is that on
// what was locked.
func record[T any](ctx context.Context, s *Store, call checkout.Call, e checkout.ProviderEvent, render checkout.Render[T],
	lock func(context.Context, *transaction) (verdict func() checkout.Verdict, settle settlement[T]),
) (checkout.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	tx, err := s.begin(ctx, call.Account)
	if err != nil {
		return "", err
	}
	defer tx.close(ctx)
	tx.started = tx.insertProviderEvent(ctx, e)
	verdictOf, settle := lock(ctx, tx)
	if err := tx.load(ctx); errors.Is(err, errKeyTaken) { // not the client's key but the event's ID
		return checkout.VerdictDuplicate, nil
	} else if err != nil {
		return "", err
	}
	verdict := verdictOf()
	tx.setVerdict(ctx, e, verdict)
	if verdict != checkout.VerdictSettled {
		return verdict, tx.commit(ctx)
	}
	_, err = keep(ctx, tx, call, render, made(settle(e.Result)))
	return verdict, err
}

// insertProviderEvent queues the record of an event. No row means that it was received before.
func (tx *transaction) insertProviderEvent(ctx context.Context, e checkout.ProviderEvent) rowOf[time.Time] {
	return tx.InsertProviderEvent(ctx, []dbsqlc.InsertProviderEventParams{{EventID: e.ID, Type: e.Type, Subject: e.Subject}})
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
	return begunBy(account, *key, fingerprint, *operation)
}
