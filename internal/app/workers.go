package app

import (
	"context"
	"sync"
	"time"

	"github.com/oncepay/oncepay/idempotency/pgstore"
	"github.com/oncepay/oncepay/internal/access"
	"github.com/oncepay/oncepay/internal/app/failpoint"
	"github.com/oncepay/oncepay/internal/app/timeline"
	"github.com/oncepay/oncepay/internal/background"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/httpapi"
	"github.com/oncepay/oncepay/internal/mailer"
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

// timelineInterval is between two looks at PostgreSQL's timeline. With its jitter, a failover
// behind a pooler is noticed within a second or so.
const timelineInterval = 700 * time.Millisecond

// workers are all of a replica, and those of them that others know.
type workers struct {
	all        []worker
	apiKeys    *access.Ring
	reconciler *checkout.Reconciler
	relay      *outbox.Relay               // nil without REDIS_URL
	consumers  map[string]*outbox.Consumer // of events, by group
	mailer     *mailer.Mailer              // nil without MAIL_URL
}

// makeWorkers makes all that a replica does besides answering requests.
func (a *App) makeWorkers(ctx context.Context, store *postgres.Store) {
	a.workers.apiKeys = access.NewRing(store, a.every(min(time.Second, a.cfg.AuthCacheTTL/2)))
	a.workers.reconciler = checkout.NewReconciler(store, failpoint.Gateway(a.servers.gateway), httpapi.EncodeSettled(ctx),
		checkout.ReconcilerOptions{Schedule: a.every(a.cfg.ReconcileInterval), Grace: a.cfg.ReconcileGrace, Deadline: a.cfg.SettleDeadline})
	a.workers.all = []worker{
		a.workers.apiKeys,
		a.workers.reconciler,
		checkout.NewExpirer(store, a.every(a.cfg.ExpiryInterval)),
		purge.New(store, purge.Options{Schedule: a.every(a.cfg.PurgeInterval), EventsKept: a.cfg.OutboxRetention}),
		background.NewPeriodic("timeline", a.every(timelineInterval), func(ctx context.Context) (int, error) {
			return 0, postgres.LookAtTimeline(ctx, a.servers.pool)
		}),
	}
	if records, ok := a.servers.records.(*pgstore.Store); ok {
		a.workers.all = append(a.workers.all, sweeper{pgstore.NewSweeper(records, pgstore.WithSweeperLogger(a.log))})
	}
	if server, err := a.cfg.mailServer(); err == nil && server != nil { // its settings were checked
		a.workers.mailer = mailer.New(postgres.NewMails(a.servers.pool), server, a.every(0))
		a.workers.all = append(a.workers.all, a.workers.mailer)
	}
	a.workers.all = append(a.workers.all, a.eventWorkers()...)
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
	events, stream := postgres.NewOutbox(a.servers.pool), outbox.NewRedisStream(a.servers.stream)
	a.workers.relay = outbox.NewRelay(events, failpoint.Stream(stream), outbox.RelayConfig{Groups: postgres.ConsumerGroups(), Logger: a.log})
	all := []worker{a.workers.relay, timeline.NewLossReporter(a.servers.timeline, stream, events)}
	a.workers.consumers = map[string]*outbox.Consumer{}
	for _, subscription := range postgres.NewInbox(a.servers.pool, a.cfg.MailURL != "").Subscriptions() {
		consumer := outbox.NewConsumer(a.servers.stream, a.cfg.Replica, subscription, outbox.ConsumerConfig{Logger: a.log})
		a.workers.consumers[subscription.Name] = consumer
		all = append(all, consumer)
	}
	return all
}

// wakeRelay has new events published soon.
func (w *workers) wakeRelay() {
	if w.relay != nil {
		w.relay.Wake()
	}
}

// start lets them run until stop: they outlive the order to stop, and end only after
// the API has drained.
func (w *workers) start(ctx context.Context) {
	for _, one := range w.all {
		one.Start(context.WithoutCancel(ctx))
	}
}

// stop stops all at once, and waits for all.
func (w *workers) stop() {
	var stopping sync.WaitGroup
	for _, one := range w.all {
		stopping.Go(one.Stop)
	}
	stopping.Wait()
}

// sweeper is pgstore's as a worker.
type sweeper struct{ *pgstore.Sweeper }

func (s sweeper) Start(context.Context) { s.Sweeper.Start() }
