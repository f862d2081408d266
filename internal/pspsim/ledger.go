package pspsim

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
)

// What an entry is, and how far it got. A pending entry has been asked for but nothing was charged;
// succeeded and declined are final.
const (
	objectCharge = "charge"
	objectRefund = "refund"

	statusPending   = "pending"
	statusSucceeded = "succeeded"
	statusDeclined  = "declined"
)

// params are what a key is bound to: the same key must bring the same again.
type params struct {
	Object    string `json:"object"`
	Amount    int64  `json:"amount"` // minor units, above zero
	Currency  string `json:"currency"`
	Reference string `json:"reference"`
	Source    string `json:"source,omitempty"` // of a charge: the card token
	Charge    string `json:"charge,omitempty"` // of a refund: the charge's ID
}

// entry is a charge or a refund, as it is answered, listed and journaled.
type entry struct {
	ID             string `json:"id"`
	IdempotencyKey string `json:"idempotency_key"`
	params
	Status      string    `json:"status"`
	DeclineCode string    `json:"decline_code,omitempty"`
	Attempts    int       `json:"attempts"` // how often the key arrived, whatever came of it
	CreatedAt   time.Time `json:"created_at"`
	Delivered   bool      `json:"delivered,omitzero"` // its event needs no more deliveries
}

// ledger holds every entry in memory, and in the journal: a file with a line for each change of an
// entry. A line that was written survives the process, also a SIGKILL: the kernel has it. It need
// not survive the machine. Safe for concurrent use.
type ledger struct {
	journal *os.File

	mu       sync.Mutex // guards the rest, and the order of journal lines
	size     int64      // of the whole lines in the journal
	byKey    map[string]*entry
	charges  map[string]*entry // settled charges by ID
	refunded map[string]int64  // by charge ID, minor units
	settled  []*entry          // in the order in which they were settled
}

// openLedger opens or creates the journal, locks it against a second process, and reads it. A last
// line without its newline was torn by a crash before its answer was sent, so it is cut off; torn
// is its length in bytes. Any other damage is an error, because it would mean lost charges.
func openLedger(path string) (l *ledger, torn int, err error) {
	journal, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("open journal: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("journal %s: %w", path, err), journal.Close())
		}
	}()
	// The kernel drops the lock with the process, also on kill -9.
	if err := syscall.Flock(int(journal.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, 0, fmt.Errorf("is another pspsim using it? %w", err)
	}
	text, err := io.ReadAll(journal)
	if err != nil {
		return nil, 0, err
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	l = &ledger{
		journal: journal, size: int64(len(whole)),
		byKey: map[string]*entry{}, charges: map[string]*entry{}, refunded: map[string]int64{},
	}
	number := 0
	for line := range bytes.Lines(whole) {
		number++
		var e entry
		if err := json.Unmarshal(line, &e, json.RejectUnknownMembers(true)); err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", number, err)
		}
		l.put(e)
	}
	return l, len(text) - len(whole), journal.Truncate(l.size)
}

// submit records that key arrived with p, charges or refunds if this is the arrival to do so, and
// returns the entry as it is in the journal by then. Concurrent arrivals of one key are put in
// order; the first charges and the others get its entry. The errors are errKeyReused,
// errUnknownToken, errUnknownCharge (nothing was charged by this arrival) or a failing journal.
func (l *ledger) submit(key string, p params) (e entry, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	token, tokenKnown := tokens[p.Source]
	switch known := l.byKey[key]; {
	case known != nil: // it comes first: a reused key must not get "unknown token"
		e = *known
	case p.Object == objectCharge && !tokenKnown:
		return e, errUnknownToken
	case p.Object == objectRefund && l.charges[p.Charge] == nil:
		return e, errUnknownCharge
	default:
		id := p.Object[:2] + "_" + strings.ToLower(rand.Text()) // ch_… or re_…
		e = entry{ID: id, IdempotencyKey: key, params: p, Status: statusPending, CreatedAt: time.Now().UTC()}
	}
	e.Attempts++
	switch {
	case e.params != p:
		err = errKeyReused
	case token.revoked && e.Attempts > 1:
		err = errUnknownToken
	case e.Status == statusPending && !(token.failFirst && e.Attempts == 1):
		e.Status, e.DeclineCode = statusSucceeded, cmp.Or(token.declineCode, l.refuseRefund(p))
		if e.DeclineCode != "" {
			e.Status = statusDeclined
		}
	}
	return e, cmp.Or(l.write(e), err)
}

// refuseRefund returns why a refund must be declined, or "".
func (l *ledger) refuseRefund(p params) string {
	switch charge := l.charges[p.Charge]; {
	case p.Object == objectCharge:
		return ""
	case charge.Status != statusSucceeded:
		return "charge_not_refundable"
	case charge.Currency != p.Currency:
		return "currency_mismatch"
	case p.Amount > charge.Amount-l.refunded[p.Charge]:
		return "refund_exceeds_charge"
	}
	return ""
}

// write puts an entry into the journal and then into memory. After an error the next line is
// written over what there is of this one.
func (l *ledger) write(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode entry: %w", err)
	}
	line = append(line, '\n')
	if _, err := l.journal.WriteAt(line, l.size); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	l.size += int64(len(line))
	l.put(e)
	return nil
}

// delivered notes that the event of a key's entry needs no more deliveries.
func (l *ledger) delivered(key string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := *l.byKey[key]
	e.Delivered = true
	return l.write(e)
}

// put makes e the key's entry; live changes and the journal's lines both end here, so that a
// restart arrives at the same state.
func (l *ledger) put(next entry) {
	e := l.byKey[next.IdempotencyKey]
	if e == nil {
		e = &entry{Status: statusPending}
		l.byKey[next.IdempotencyKey] = e
	}
	settling := e.Status == statusPending && next.Status != statusPending
	*e = next
	if !settling {
		return
	}
	l.settled = append(l.settled, e)
	if e.Object == objectCharge {
		l.charges[e.ID] = e
	} else if e.Status == statusSucceeded {
		l.refunded[e.Charge] += e.Amount
	}
}

// list returns the settled entries that match, oldest first.
func (l *ledger) list(match func(*entry) bool) []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := []entry{}
	for _, e := range l.settled {
		if match(e) {
			found = append(found, *e)
		}
	}
	return found
}
