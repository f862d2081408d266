//go:build failpoints

package failpoint

import (
	"context"
	"time"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/outbox"
)

// Store returns a store with failpoints after an acquire and before a completion.
func Store(store idempotency.Store) idempotency.Store { return failingStore{store} }

type failingStore struct{ idempotency.Store }

func (s failingStore) Acquire(ctx context.Context, pending idempotency.Record, lease time.Duration) (*idempotency.Record, error) {
	found, err := s.Store.Acquire(ctx, pending, lease)
	if found == nil && err == nil {
		reach(afterAcquire)
	}
	return found, err
}

func (s failingStore) Complete(ctx context.Context, done idempotency.Record, ttl time.Duration) error {
	reach(beforeComplete)
	return s.Store.Complete(ctx, done, ttl)
}

func (s failingStore) Watch(scope, key string) (<-chan struct{}, func()) {
	return idempotency.Watch(s.Store, scope, key)
}

func (s failingStore) Lookup(ctx context.Context, scope, key string) (*idempotency.Record, error) {
	return idempotency.Lookup(ctx, s.Store, scope, key)
}

func (s failingStore) Repair(ctx context.Context, pending idempotency.Record, lease time.Duration) (*idempotency.Record, error) {
	return idempotency.Repair(ctx, s.Store, pending, lease)
}

// Gateway returns a gateway with failpoints before and after each charge and refund.
func Gateway(gateway checkout.Gateway) checkout.Gateway { return failingGateway{gateway} }

type failingGateway struct{ next checkout.Gateway }

func (g failingGateway) Supports(amount checkout.Money) bool { return g.next.Supports(amount) }

func (g failingGateway) Charge(ctx context.Context, r checkout.ChargeRequest) checkout.GatewayResult {
	reach(beforeProvider)
	defer reach(afterProvider)
	return g.next.Charge(ctx, r)
}

func (g failingGateway) Refund(ctx context.Context, r checkout.RefundRequest) checkout.GatewayResult {
	reach(beforeProvider)
	defer reach(afterProvider)
	return g.next.Refund(ctx, r)
}

func (g failingGateway) FindCharge(ctx context.Context, r checkout.ChargeRequest) checkout.GatewayResult {
	return g.next.FindCharge(ctx, r)
}

func (g failingGateway) FindRefund(ctx context.Context, r checkout.RefundRequest) checkout.GatewayResult {
	return g.next.FindRefund(ctx, r)
}

// Stream returns a stream with one after each publication.
func Stream(stream outbox.Stream) outbox.Stream { return failingStream{stream} }

type failingStream struct{ outbox.Stream }

func (s failingStream) Publish(ctx context.Context, events []outbox.Event) error {
	err := s.Stream.Publish(ctx, events)
	if err == nil {
		reach(afterPublish)
	}
	return err
}
