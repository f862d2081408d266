// Package outbox carries events from the database to a stream, and from there to their effects,
// each once.
//
// An event is a row of the outbox, written by the transaction that made it happen and never
// updated. A [Relay] publishes the rows in order, at least once. A [Consumer] records each event in
// its inbox, in the transaction of the effect, so an event that comes twice has one effect.
//
//	business transaction → outbox → Relay → stream → Consumer → inbox and effect
//
// # Order
//
// An event's position is drawn from a sequence while its transaction holds the lock of the
// subject's row, so the positions of one subject are in the order of what happened. The relay
// publishes in the order of positions and moves one cursor. Transactions may commit out of order;
// so it reads the last position that was drawn, and waits until all transactions have ended that
// had written to the outbox at that moment. Then it publishes the rows up to this position. A row
// that is still missing was rolled back.
//
// Relays run in every replica, and the one that holds the lease works. A relay that stops between
// publishing and moving the cursor, or is paused for longer than its lease, leads to repetitions:
// the first appearances of a subject's events are in order, and the inbox removes the others. A
// consumer group hands a subject's events to different processes, and what the stream lost comes
// later; an effect that needs order must keep it by itself.
//
// # Losses
//
// The stream may lose anything at any time. The database knows what each group has handled:
// everything up to its cursor, and after it what is in its inbox. Every second the relay with the
// lease moves the cursors. If a group has handled the whole stream and still lacks events, the
// stream has lost them, and the relay publishes them again. An event at or before the cursor has no
// effect when it arrives again, so the inbox before the cursor can be deleted, and a group that is
// created anew can read the stream from its beginning.
//
// Rows of the outbox are deleted only up to the earliest cursor, and the stream is trimmed only
// where every group has acknowledged. If the stream is full, the relay pauses, and events wait in
// the outbox.
//
// # Failures
//
// That the stream or the database is away does not count against any event: relay and consumers
// wait, with full jitter, and never give up. An event that a consumer refuses becomes a dead letter
// of its group. It is tried again, with pauses, and after [MaxAttempts] only after [Retry]; other
// events do not wait for it. [Status] and [List] show what waits, and [Replay] publishes events
// again for consumers that do not use this inbox.
package outbox
