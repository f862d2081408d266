package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"
)

const (
	// anyAccount is that of the events of a backlog, which nobody looks up.
	anyAccount = "00000000-0000-7000-8000-000000000000"
	// batch is how many positions of the outbox a transaction takes: a batch of the relay, and, as
	// half of the events are for its group, of a consumer. internal/outbox has their sizes, which
	// load tests do not import.
	batch = 1000
)

// drainFloor has pgbench do what a relay and the three consumer groups do with PostgreSQL, side by
// side, with arrays that each statement reads itself.
func (b *bench) drainFloor(ctx context.Context) (sample, error) {
	events := b.cfg.events()
	f, err := b.openFloor(ctx, backlog(events), "UPDATE outbox_cursor SET owner = '"+anyAccount+"', position = 0", "VACUUM (ANALYZE) outbox")
	if err != nil {
		return nil, err
	}
	rate := rateOf(events)
	return b.costing(func() (sample, error) {
		found := sample{"answered": float64(events)}
		var group errgroup.Group
		for name, script := range drainScripts() {
			group.Go(func() error {
				text, err := script.text()
				if err != nil {
					return err
				}
				_, err = f.run(ctx, text, "-c", "1", "-t", fmt.Sprint(max(1, events/batch)))
				if name == "relay" {
					found["published"] = rate()
				}
				return err
			})
		}
		err := group.Wait()
		found["handled"] = rate()
		return found, err
	})
}

// script is one of pgbench: queries of the service, with values in the place of their parameters.
// Its transactions take the positions up to :n.
type script struct {
	queries []string
	values  *strings.Replacer
}

func drainScripts() map[string]script {
	before := fmt.Sprintf("(:n - %d)", batch)
	return map[string]script{
		"relay": {[]string{"EventsBetween", "AdvanceOutbox"}, strings.NewReplacer("@after", before, "@last", "2000000000",
			"@batch_size", fmt.Sprint(batch), "@owner", "'"+anyAccount+"'", "@before", before, "@position", ":n", "@lease_seconds", "10")},
		"confirmations": consumer("order-confirmations", "order.placed", "ConfirmOrders"),
		"notices":       consumer("warehouse-notices", "payment.succeeded", "NoticeWarehouse"),
		"receipts":      consumer("payment-confirmations", "payment.succeeded", "ConfirmOrders"),
	}
}

// consumer is what a group does.
func consumer(group, event, query string) script {
	column := func(name string) string {
		return fmt.Sprintf("(SELECT array_agg(%s ORDER BY id) FROM outbox WHERE id > :n - %d AND id <= :n AND type = '%s')", name, batch, event)
	}
	return script{[]string{query}, strings.NewReplacer("@consumer", "'"+group+"'", "@positions", column("id"),
		"@event_ids", column("event_id"), "@types", "ARRAY['"+event+"']", "@by_mail", "true")}
}

// text takes the queries from sqlc's files, by their names.
func (s script) text() (string, error) {
	var queries string
	for _, file := range []string{"outbox", "inbox"} {
		text, err := os.ReadFile("sql/queries/" + file + ".sql")
		if err != nil {
			return "", err
		}
		queries += string(text)
	}
	all := fmt.Sprintf("\\set n :n + %d\n", batch)
	for _, name := range s.queries {
		_, query, found := strings.Cut(queries, "-- name: "+name+" ")
		if !found {
			return "", fmt.Errorf("there is no query %s", name)
		}
		_, query, _ = strings.Cut(query, "\n")
		query, _, _ = strings.Cut(query, ";")
		all += s.values.Replace(query) + ";\n"
	}
	return all, nil
}
