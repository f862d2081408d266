// Package outbox carries events from the database to a broker, and from there
// to their effects, each once.
//
// An event is a row of the outbox, written by the transaction that made it
// happen. A [Relay] in every replica publishes such rows, at least once; a
// [Consumer] notes the ID of each event in the transaction of its effect, so an
// event that comes twice has one effect.
//
//	business transaction → outbox → Relay → Publisher → stream → Consumer → inbox and effect
//
// # Order
//
// Events of one subject, such as an order, are published in the order in which
// they happened, by any number of relays and whatever crashes:
//
//   - They are written under the lock of the subject's row. A later event gets
//     its ID after the earlier one was committed; so whoever sees an event sees
//     all the earlier ones of its subject, and their IDs are in order. Where
//     there is no common lock, between subjects or between a customer's name and
//     wallet, IDs may be committed out of order; therefore a relay looks for what
//     is unpublished and never for what comes after an ID.
//   - Only the first unpublished event of a subject can be claimed, and by one
//     relay at a time. The next one has to wait until it is marked.
//
// A relay that stops between publishing and marking, or is paused for longer
// than its claim lasts, leads to a repetition: the events' first appearances are
// in order, and the inbox removes the others. A consumer group hands a subject's
// events to different processes, though; an effect that needs order must keep
// it by itself.
//
// # Trouble
//
// A broker that is away is nobody's fault: events go back, the relay waits, with
// full jitter, and nothing is ever given up. An event that the publisher refuses
// is tried again later and becomes a dead letter after some attempts, which
// blocks the later events of its subject and of no other. Letting them pass
// would show "paid" to those who never saw "placed"; dropping one is for a human
// to decide. [List] shows them, [Retry] gives them another chance, and [Replay]
// sends again what a broker lost.
package outbox
