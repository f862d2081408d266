package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// anyAccount is that of the events of a backlog, which nobody looks up.
	anyAccount = "00000000-0000-7000-8000-000000000000"
	// The service's batches: internal/outbox has them, which load tests do not import.
	relayBatch, consumerBatch = 1000, 500
)

// drainFloor has pgbench do what a relay and the three consumer groups do with PostgreSQL, side by
// side, with arrays that each statement reads itself.
func (b *bench) drainFloor(ctx context.Context) (sample, error) {
	events := b.cfg.events()
	f, err := b.openFloor(ctx, backlog(events), "UPDATE outbox_cursor SET owner = '"+anyAccount+"', position = 0", "VACUUM (ANALYZE) outbox")
	if err != nil {
		return nil, err
	}
	began := time.Now()
	rate := func() float64 { return float64(events) / time.Since(began).Seconds() }
	return b.costing(func() (int, sample, error) {
		var published float64
		var group errgroup.Group
		for name, script := range drainScripts() {
			group.Go(func() error {
				text, err := script.text()
				if err != nil {
					return err
				}
				path := filepath.Join(b.bin, name+".sql")
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					return err
				}
				_, _, err = f.run(ctx, path, "-c", "1", "-t", fmt.Sprint(max(1, events/script.batch)))
				if name == "relay" {
					published = rate()
				}
				return err
			})
		}
		err := group.Wait()
		return events, sample{"published": published, "handled": rate()}, err
	})
}

// script is one of pgbench: queries of the service, with values in the place of their parameters.
// Each of its transactions takes so many positions of the outbox, up to :n.
type script struct {
	batch   int
	queries []string
	values  map[string]string
}

func drainScripts() map[string]script {
	before := fmt.Sprint(":n - ", relayBatch)
	return map[string]script{
		"relay": {relayBatch, []string{"EventsBetween", "AdvanceOutbox"}, map[string]string{
			"after": before, "last": "2000000000", "batch_size": fmt.Sprint(relayBatch),
			"owner": "'" + anyAccount + "'", "before": before, "position": ":n", "lease_seconds": "10"}},
		"confirmations": consumer("order-confirmations", "order.placed", "ConfirmOrders"),
		"notices":       consumer("warehouse-notices", "payment.succeeded", "NoticeWarehouse"),
		"receipts":      consumer("payment-confirmations", "payment.succeeded", "ConfirmOrders"),
	}
}

// consumer is what a group does. Half of the events are for it, so that its batch has two halves.
func consumer(group, event, query string) script {
	column := func(name string) string {
		return fmt.Sprintf("(SELECT array_agg(%s ORDER BY id) FROM outbox WHERE id > :n - %d AND id <= :n AND type = '%s')", name, 2*consumerBatch, event)
	}
	return script{2 * consumerBatch, []string{query}, map[string]string{"consumer": "'" + group + "'", "positions": column("id"),
		"event_ids": column("event_id"), "types": "ARRAY['" + event + "']", "by_mail": "true"}}
}

var parameter = regexp.MustCompile(`@(\w+)`)

// text takes the queries from sqlc's files, by their names.
func (s script) text() (string, error) {
	outbox, err := os.ReadFile("sql/queries/outbox.sql")
	if err != nil {
		return "", err
	}
	inbox, err := os.ReadFile("sql/queries/inbox.sql")
	if err != nil {
		return "", err
	}
	all := fmt.Sprintf("\\set n :n + %d\n", s.batch)
	for _, name := range s.queries {
		_, text, found := strings.Cut(string(outbox)+string(inbox), "-- name: "+name+" ")
		_, text, _ = strings.Cut(text, "\n")
		text, _, _ = strings.Cut(text, ";")
		all += parameter.ReplaceAllStringFunc(text, func(p string) string {
			value, known := s.values[p[1:]]
			found = found && known
			return "(" + value + ")"
		}) + ";\n"
		if !found {
			return "", fmt.Errorf("there is no query %s, or it has other parameters", name)
		}
	}
	return all, nil
}
