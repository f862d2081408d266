package outbox

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// Status writes how far the relay and each consumer group have come.
func Status(ctx context.Context, admin Admin, groups []Group, w io.Writer) error {
	backlog, err := admin.Backlog(ctx)
	if err != nil {
		return fmt.Errorf("measure the outbox: %w", err)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row(table, "", "POSITION", "WAITING", "OLDEST", "RETRYING", "DEAD")
	row(table, "published", backlog.Published, backlog.Waiting, backlog.Oldest.Round(time.Second), "", "")
	for _, group := range groups {
		lag, err := admin.Lag(ctx, group)
		if err != nil {
			return fmt.Errorf("measure consumer group %s: %w", group.Name, err)
		}
		row(table, group.Name, lag.Cursor, lag.Events, lag.Oldest.Round(time.Second), lag.Retrying, lag.Dead)
	}
	return table.Flush()
}

// List writes a table of up to limit events that consumers refused, dead letters first.
func List(ctx context.Context, admin Admin, w io.Writer, limit int) error {
	letters, err := admin.DeadLetters(ctx, limit)
	if err != nil {
		return fmt.Errorf("list dead letters: %w", err)
	}
	if len(letters) == 0 {
		_, err := fmt.Fprintln(w, "no event is refused")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row(table, "POSITION", "GROUP", "TYPE", "SUBJECT", "AGE", "ATTEMPTS", "RETRY AT", "LAST ERROR")
	for _, l := range letters {
		retryAt := "never"
		if l.RetryAt != nil {
			retryAt = l.RetryAt.UTC().Format(time.TimeOnly)
		}
		row(table, l.Position, l.Group, l.Type, l.Subject, l.Age.Round(time.Second), l.Attempts, retryAt, fmt.Sprintf("%q", l.LastError))
	}
	return table.Flush()
}

// row writes the cells of a table's line. An error shows at Flush.
func row(table io.Writer, cells ...any) {
	for i, cell := range cells {
		if i > 0 {
			_, _ = fmt.Fprint(table, "\t")
		}
		_, _ = fmt.Fprint(table, cell)
	}
	_, _ = fmt.Fprintln(table)
}

// Retry makes refused events due at once; without positions, all of them. It returns an error if no
// group refused the event at one of the positions; the others are tried again all the same.
func Retry(ctx context.Context, admin Admin, w io.Writer, positions ...int64) error {
	due, err := admin.Retry(ctx, positions)
	if err != nil {
		return fmt.Errorf("retry events: %w", err)
	}
	if _, err := fmt.Fprintf(w, "%d events will be tried again\n", len(due)); err != nil {
		return err
	}
	missing := slices.DeleteFunc(slices.Clone(positions), func(p int64) bool { return slices.Contains(due, p) })
	if len(missing) > 0 {
		return fmt.Errorf("retry events: no group refused an event at %v; see outbox list", missing)
	}
	return nil
}

// Replay publishes again all that happened within this long, for consumers elsewhere that lost it.
// Our own groups need no replay: what they did not get is published again by itself. It may be done
// twice, as consumers deduplicate.
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
