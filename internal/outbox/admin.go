package outbox

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// List writes a table of up to limit unpublished events, dead letters first.
func List(ctx context.Context, admin Admin, w io.Writer, limit int) error {
	backlog, err := admin.Backlog(ctx)
	if err != nil {
		return fmt.Errorf("measure the outbox: %w", err)
	}
	events, err := admin.Unpublished(ctx, limit)
	if err != nil {
		return fmt.Errorf("list the outbox: %w", err)
	}
	if len(events) == 0 {
		_, err := fmt.Fprintln(w, "every event is published")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ID\tSTATE\tTYPE\tSUBJECT\tAGE\tATTEMPTS\tLAST ERROR") // an error shows at Flush
	for _, e := range events {
		_, _ = fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%d\t%q\n",
			e.Position, e.State, e.Type, e.Subject, e.Age.Round(time.Second), e.Attempts, e.LastError)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%d unpublished, %d of them dead letters; %d shown\n",
		backlog.Waiting+backlog.Dead, backlog.Dead, len(events))
	return err
}

// Retry gives refused events another chance at once; without positions, which
// List shows as ID, all of them.
func Retry(ctx context.Context, admin Admin, w io.Writer, positions ...int64) error {
	n, err := admin.Retry(ctx, positions)
	if err != nil {
		return fmt.Errorf("retry events: %w", err)
	}
	_, err = fmt.Fprintf(w, "%d events will be tried again\n", n)
	return err
}

// Replay sends again all that was published within this long, for a broker that
// lost it. It may be done twice: consumers deduplicate. An event that is being
// published at this very moment may come before its subject's replayed ones.
func Replay(ctx context.Context, admin Admin, w io.Writer, since time.Duration) error {
	if since <= 0 {
		return fmt.Errorf("replay since %s: want a positive duration, such as 10m", since)
	}
	n, err := admin.Replay(ctx, since)
	if err != nil {
		return fmt.Errorf("replay events: %w", err)
	}
	_, err = fmt.Fprintf(w, "%d events will be published again\n", n)
	return err
}
