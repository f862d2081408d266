package app

import (
	"context"
	"sync"
	"time"

	"github.com/oncepay/oncepay/idempotency/pgstore"
	"github.com/oncepay/oncepay/internal/background"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/httpapi"
	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/postgres"
	"github.com/oncepay/oncepay/internal/purge"
)

// worker runs beside the API, in every replica: what they work on is shared out by PostgreSQL.
// Start returns at once. Stop returns when the worker has ended, which takes seconds at most.
type worker interface {
	Start(ctx context.Context)
	Stop()
}

// newWorkers makes all that a replica does besides answering requests.
func (a *App) newWorkers(ctx context.Context, store *postgres.Store) []worker {
	a.reconciler = checkout.NewReconciler(store, failGateway(a.gateway), httpapi.RenderPayment(ctx), httpapi.RenderRefund(ctx),
		checkout.ReconcilerOptions{Schedule: a.every(a.cfg.ReconcileInterval), Grace: a.cfg.ReconcileGrace, Deadline: a.cfg.SettleDeadline})
	workers := []worker{
		a.apiKeys,
		a.reconciler,
		checkout.NewExpirer(store, a.every(a.cfg.ExpiryInterval)),
		purge.New(store, purge.Options{Schedule: a.every(a.cfg.PurgeInterval), EventsKept: a.cfg.OutboxRetention}),
	}
	if records, ok := a.records.(*pgstore.Store); ok {
		workers = append(workers, sweeper{pgstore.NewSweeper(records, pgstore.WithSweeperLogger(a.log))})
	}
	return append(workers, a.eventWorkers()...)
}

// every is a schedule; what is zero has the service's default.
func (a *App) every(interval time.Duration) background.Schedule {
	return background.Schedule{Interval: interval, Log: a.log}
}

// eventWorkers publish what the outbox holds and consume it. They need Redis; without it the events
// wait.
func (a *App) eventWorkers() []worker {
	if a.cfg.RedisURL == "" {
		a.log.Warn("no REDIS_URL: events wait in the outbox")
		return nil
	}
	events, stream := postgres.NewOutbox(a.pool), outbox.NewRedisStream(a.stream)
	a.relay = outbox.NewRelay(events, failStream(stream), outbox.RelayConfig{Groups: postgres.ConsumerGroups(), Logger: a.log})
	workers := []worker{a.relay, &lossReporter{App: a, stream: stream, outbox: events}}
	a.consumers = consumers{}
	for _, subscription := range postgres.NewInbox(a.pool).Subscriptions() {
		consumer := outbox.NewConsumer(a.stream, a.cfg.Replica, subscription, outbox.ConsumerConfig{Logger: a.log})
		a.consumers[subscription.Name] = consumer
		workers = append(workers, consumer)
	}
	return workers
}

// wakeRelay has new events published soon.
func (a *App) wakeRelay() {
	if a.relay != nil {
		a.relay.Wake()
	}
}

// startWorkers lets them run until stopWorkers: they outlive the order to stop, and end only after
// the API has drained.
func (a *App) startWorkers(ctx context.Context) {
	for _, w := range a.workers {
		w.Start(context.WithoutCancel(ctx))
	}
}

// stopWorkers stops all at once, and waits for all.
func (a *App) stopWorkers() {
	var stopping sync.WaitGroup
	for _, w := range a.workers {
		stopping.Go(w.Stop)
	}
	stopping.Wait()
}

// sweeper is pgstore's as a worker.
type sweeper struct{ *pgstore.Sweeper }

func (s sweeper) Start(context.Context) { s.Sweeper.Start() }
