package outbox

import (
	"context"
	"fmt"
	"time"
)

// mark is made when a group has not handled all published events. It holds the position up to which
// events were published then, and the last entry of the stream. Once the group has handled that
// entry, the events up to the position that it still lacks are no longer in the stream.
type mark struct {
	position int64
	entry    EntryID
}

// keepUp looks how much room the stream has, and does the upkeep, of which it only trims between
// two times. When that fails, it is done later: publishing does not depend on it.
func (r *Relay) keepUp(ctx context.Context) error {
	state, err := r.stream.State(ctx)
	if err != nil {
		return fmt.Errorf("ask for the state of the stream: %w", err)
	}
	r.looked = time.Now()
	if r.room = r.cfg.MaxLen - state.Length; r.room <= 0 && time.Since(r.warned) >= r.cfg.Upkeep {
		r.warned = r.looked
		r.cfg.Logger.WarnContext(ctx, "outbox: events wait, because the stream is full of events that consumers have not handled",
			"length", state.Length)
	}
	work := r.trim
	if time.Since(r.kept) >= r.cfg.Upkeep {
		r.kept, work = r.looked, r.upkeep
	}
	if err := work(ctx, state); err != nil && ctx.Err() == nil {
		r.troubles.Add(1)
		r.cfg.Logger.WarnContext(ctx, "outbox: can't look what consumer groups have had", "error", err)
	}
	return nil
}

// upkeep moves the groups' cursors, publishes again what the stream has lost, and trims the stream.
func (r *Relay) upkeep(ctx context.Context, state StreamState) error {
	for _, group := range r.cfg.Groups {
		progress, err := r.advance(ctx, group)
		if err == nil && progress.Complete {
			delete(r.marks, group.Name)
		} else if err == nil {
			err = r.redeliver(ctx, group, progress, state)
		}
		if err != nil {
			return err
		}
	}
	if err := r.retry(ctx); err != nil {
		return err
	}
	return r.trim(ctx, state)
}

// advance moves a group's cursor as far as it can.
func (r *Relay) advance(ctx context.Context, group Group) (progress Progress, err error) {
	for progress.More = true; progress.More && err == nil; {
		progress, err = r.store.AdvanceGroup(ctx, group, 10*r.cfg.Batch)
	}
	if err != nil {
		return progress, fmt.Errorf("advance consumer group %s: %w", group.Name, err)
	}
	return progress, nil
}

// redeliver publishes again the events that a group lacks and the stream no longer holds.
func (r *Relay) redeliver(ctx context.Context, group Group, progress Progress, state StreamState) error {
	at, marked := r.marks[group.Name]
	if !marked {
		at = mark{position: r.published, entry: state.Last}
		r.marks[group.Name] = at
	}
	if !state.Handled(group.Name, at.entry) {
		return nil
	}
	delete(r.marks, group.Name)
	for after := progress.Cursor; r.room > 0; {
		missing, err := r.store.Missing(ctx, group, after, at.position, min(r.cfg.Batch, int(r.room)))
		if err != nil {
			return fmt.Errorf("look for events that consumer group %s misses: %w", group.Name, err)
		}
		if len(missing) == 0 {
			return nil
		}
		r.cfg.Logger.WarnContext(ctx, "outbox: events are published again, because the stream lost them",
			"group", group.Name, "events", len(missing), "first", missing[0].Position)
		if err := r.republish(ctx, missing); err != nil {
			return err
		}
		after = missing[len(missing)-1].Position
	}
	return nil
}

// retry publishes refused events whose pause is over.
func (r *Relay) retry(ctx context.Context) error {
	due, err := r.store.DueDeadLetters(ctx)
	if err != nil {
		return fmt.Errorf("look for refused events: %w", err)
	}
	if len(due) == 0 {
		return nil
	}
	return r.republish(ctx, due)
}

func (r *Relay) republish(ctx context.Context, events []Event) error {
	ctx, cancel := context.WithDeadline(ctx, r.leased)
	defer cancel()
	if err := r.stream.Publish(ctx, events); err != nil {
		return fmt.Errorf("publish events again: %w", err)
	}
	r.republications.Add(int64(len(events)))
	r.room -= int64(len(events))
	return nil
}

// trim keeps the newest entries for people to look at.
func (r *Relay) trim(ctx context.Context, state StreamState) error {
	excess := state.Length - r.cfg.MaxLen/2
	if excess <= 0 {
		return nil
	}
	if err := r.stream.Trim(ctx, state.Trimmable(r.cfg.Groups), excess); err != nil {
		return fmt.Errorf("trim the stream: %w", err)
	}
	return nil
}
