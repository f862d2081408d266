// Package pspsim simulates a card provider: it charges and refunds over HTTP, is itself idempotent
// by key, and lists what it really charged. The card token makes it slow, makes it decline, or
// makes it stop answering.
//
// It exists so that tests can prove "one key, one charge" against a party that is not the service
// under test. So it shares no code with that service, and no charge it ever answered is lost with
// the process: each change is written to a journal file before the answer leaves, and a start reads
// the journal again.
//
//	sim, err := pspsim.New("pspsim.journal", slog.Default())
//	if err != nil { … }
//	defer sim.Close()
//	err = sim.Serve(ctx, listener)
//
// GET /v1/charges and GET /v1/refunds list what was settled, oldest first: all of it, or what has a
// reference, a key (Idempotency-Key), or of refunds a charge.
//
// With [Server.SendEvents] it also sends a signed event for each outcome, at least once. POST
// /v1/webhooks/replay?reference=<order> sends those of an order's charges and refunds once more,
// the newest first.
//
// PUT /v1/trouble makes it misbehave for all clients, see trouble.go; DELETE ends that, and returns
// how many answers and events were affected.
//
// # Tokens
//
//	tok_visa, tok_mastercard  approve
//	tok_declined              declines with card_declined
//	tok_insufficient_funds    declines with insufficient_funds
//	tok_slow_<N>s             charges at once, answers N seconds (1 to 60) later
//	tok_charged_no_answer     charges, and hangs up on the key's first arrival
//	tok_charged_silent        the same, and sends no event
//	tok_charged_revoked       the same, and is unknown when the key arrives again
//	tok_error_first           500 on the key's first arrival, before charging
package pspsim
