package books

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5"
)

// EachMailed is the promise about mails.
const EachMailed Rule = "each order and payment is mailed under its event's ID"

// Confirmation is a row of order_confirmations, by the ID of its event.
type Confirmation struct {
	Event   string
	Due     bool // the mail is not sent yet
	Refused bool // for good, and the customer's address is such that a server may
}

// mailed checks that each confirmation was sent at least once, under the ID of its event, and that
// no mail has another one. It checks nothing where the mails were not read.
func mailed(b Books) []Violation {
	if b.Mails == nil {
		return nil
	}
	rows, refused := map[string]int{}, map[string]bool{}
	for _, row := range b.Mailable {
		rows[row.Event]++
		refused[row.Event] = row.Refused
	}
	var found []Violation
	known := map[string]bool{}
	for _, e := range b.Events {
		if e.Type != "order.placed" && e.Type != "payment.succeeded" {
			continue
		}
		known[e.ID] = true
		if n := rows[e.ID]; n != 1 {
			found = append(found, Broken(EachMailed, "event %s %s has %d confirmations", e.ID, e.Type, n))
		}
		if b.Mails[e.ID] == 0 && !refused[e.ID] {
			found = append(found, Broken(EachMailed, "event %s %s of %s has no mail", e.ID, e.Type, e.Subject))
		}
	}
	for id := range b.Mails {
		if !known[id] {
			found = append(found, Broken(EachMailed, "a mail has the Message-ID of no event: %s", id))
		}
	}
	return found
}

// areMailed says whether no mail is waiting.
func (b Books) areMailed() bool {
	rows := map[string]bool{}
	for _, row := range b.Mailable {
		if row.Due {
			return false
		}
		rows[row.Event] = true
	}
	for _, e := range b.Events {
		if (e.Type == "order.placed" || e.Type == "payment.succeeded") && !rows[e.ID] {
			return false
		}
	}
	return true
}

func (r Reader) confirmations(ctx context.Context, tx pgx.Tx, b *Books) error {
	if r.MailsURL == "" {
		return nil
	}
	return each(ctx, tx, `SELECT event_id::text, due_at IS NOT NULL, due_at IS NULL AND sent_at IS NULL AND email !~ '^[A-Za-z0-9_-]+@example\.com$'
		FROM order_confirmations JOIN orders o ON o.id = order_id JOIN customers c ON c.id = o.customer_id`, func(rows pgx.Rows) error {
		var row Confirmation
		err := rows.Scan(&row.Event, &row.Due, &row.Refused)
		b.Mailable = append(b.Mailable, row)
		return err
	})
}

// mails counts the mails that the server has, by the event in their Message-ID.
func (r Reader) mails(ctx context.Context, b *Books) error {
	if r.MailsURL == "" {
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.MailsURL+"/v1/mails?limit=0", http.NoBody)
	if err != nil {
		return err
	}
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("list the mails: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	var list struct {
		Mails []struct {
			MessageID string `json:"message_id"`
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil {
		return fmt.Errorf("list the mails: %w", err)
	}
	b.Mails = map[string]int{}
	for _, mail := range list.Mails {
		event, _, _ := strings.Cut(mail.MessageID, "@")
		b.Mails[event]++
	}
	return nil
}
