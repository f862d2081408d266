package authority

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Run makes the changes of a request in a transaction, and returns what it led to. It may run
// without its changes being committed, so it must have no effect outside of the transaction. An
// error rolls back, and keeps nothing.
type Run func(ctx context.Context, tx *Tx) (Outcome, error)

// Once executes a request at most once under its key: the changes of run, the key and the answer
// are committed together, or nothing is. If the key is taken, it returns the answer that is kept
// under it, or a [Taken].
//
// An error that wraps [idempotency.ErrUnavailable] may leave the request executed: a retry with
// the same key finds out.
//
// The [idempotency.Claim] that ctx has of the same key is for one operation: after one that had no
// error, and beside one, Once returns [idempotency.ErrSecondOperation].
func (k *Keys) Once(ctx context.Context, claim Claim, run Run) (result Result, err error) {
	err = claim.operate(ctx, func() (err error) {
		result, err = k.once(ctx, claim, run)
		return err
	})
	return result, err
}

func (k *Keys) once(ctx context.Context, claim Claim, run Run) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	tx, err := k.beginClaim(ctx, claim)
	if err != nil {
		return Result{}, err
	}
	defer tx.close(ctx)
	result, err := tx.run(ctx, run, claiming{Claim: claim})
	if errors.Is(err, errTaken) {
		found, err := tx.taken(ctx, claim.Scope, claim.Key)
		if err != nil {
			return Result{}, err
		}
		return found.replay(claim)
	}
	return result, err
}

func (k *Keys) beginClaim(ctx context.Context, claim Claim) (*Tx, error) {
	if claim.Key == "" {
		tx, err := k.begin(ctx, clockSQL)
		if err == nil {
			tx.isAbandoned = claim.IsAbandoned
		}
		return tx, err
	}
	return k.begin(ctx, k.sql.probe, claim.Scope, claim.Key)
}

// keeper queues how the key's row keeps an outcome.
type keeper interface {
	keep(tx *Tx, o Outcome, state string, header json.RawMessage) error
}

// run runs, and commits what follows.
func (tx *Tx) run(ctx context.Context, run Run, key keeper) (Result, error) {
	o, err := run(ctx, tx)
	if err == nil && !tx.open { // it has made no statement yet
		err = tx.Send(ctx)
	}
	if tx.failed != nil {
		err = tx.failed // whatever the function has made of it
	}
	if err != nil {
		return Result{}, err
	}
	if o.kind == refusedForNow || o.kind == refused && tx.hasFailed() {
		tx.restart(ctx) // without the changes
	}
	if hasCallbacks(tx.queue) { // their errors come before the commit
		if err := tx.flush(ctx); err != nil {
			return Result{}, err
		}
	}
	if err := tx.keep(o, key); err != nil {
		return Result{}, err
	}
	if err := tx.commit(ctx); err != nil {
		return Result{}, err
	}
	return Result{Answer: o.answer, Correctable: o.kind == refusedForNow}, nil
}

// states are those of a key's row, by outcome.
var states = map[kind]string{done: "completed", refused: "failed", refusedForNow: "refused", begun: "in_progress"}

func (tx *Tx) keep(o Outcome, key keeper) error {
	var header json.RawMessage // not []byte, which is sent as bytea where the driver does not ask for a type
	own := o.kind == nothing || o.kind == begun || o.kind == refusedForNow && o.answer.Status == 0
	if !own && (o.answer.Status < 200 || o.answer.Status > 499) {
		return fmt.Errorf("%w: an answer has a status from 200 to 499, not %d: return an error instead", errMistake, o.answer.Status)
	}
	if o.kind == begun && o.id == "" {
		return errNoID // nothing would lead back to it
	}
	if o.kind == done || o.kind == refused {
		if err := o.answer.check(); err != nil {
			return err
		}
		var err error
		if header, err = json.Marshal(o.answer.Header); err != nil {
			return fmt.Errorf("%w: encode the answer's header: %w", errMistake, err)
		}
	}
	return key.keep(tx, o, states[o.kind], header)
}

// bodyOf is never nil: an empty body is one, too, and NULL means no answer yet.
func bodyOf(a Answer) []byte {
	if a.Body == nil {
		return []byte{}
	}
	return a.Body
}

// check refuses what PostgreSQL's text cannot hold, or JSON would change. A body may be any bytes.
func (a Answer) check() error {
	texts := []string{a.Resource}
	for name, value := range a.Header {
		texts = append(texts, name, value)
	}
	for _, text := range texts {
		if !isText(text) {
			return fmt.Errorf("%w: the answer's resource and header must be UTF-8 without a NUL, not %q", errMistake, text)
		}
	}
	return nil
}

func isText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// keptResource is that of an answer that is kept.
func (a Answer) keptResource(k kind) string {
	if k == refusedForNow {
		return ""
	}
	return a.Resource
}
