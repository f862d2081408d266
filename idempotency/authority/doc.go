// Package authority lets PostgreSQL decide that a request has one effect: the key, the effect and
// the answer are committed in one transaction, so that a crash leaves all of them or none.
//
// The middleware of package idempotency cannot promise this alone: its store and the database
// cannot commit together. With an authority, the store becomes an accelerator. It answers replays
// and keeps attempts apart, and it may lose everything at any moment.
//
//	keys := authority.New(pool)
//	once := idempotency.New(memstore.New(), policy, idempotency.WithScope(accountOf))
//	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
//		keys.Serve(w, r, "place_order", func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
//			_, err := tx.Exec(ctx, "INSERT INTO orders …")
//			return authority.Done(authority.Answer{Status: 201, Body: …}), err
//		})
//	})
//	server := http.Server{Handler: arrival.Note(proxies...)(once.Handler(mux)), ConnContext: arrival.WithConn}
//
// # In one transaction
//
// [Keys.Once] looks whether the key is taken, runs the request, writes the key's row with the
// answer, and commits. The write claims the key and decides: if the key was taken meanwhile, its
// row gets a status that the table refuses, nothing is committed, and the answer that is kept is
// returned.
//
//	outcome            kept                      a retry
//	[Done]             the answer, for the TTL   gets it again
//	[Refused]          the answer, for the TTL   gets it again
//	[RefusedForNow]    that it was refused       is executed; an older copy is not
//	[Begun]            what was begun            goes on with it
//	an error           nothing                   is executed
//
// # Around a provider
//
// No transaction is open while a provider is asked. [Keys.Begin] commits what is begun, with
// attempt 1, and [Keys.Settle] commits the outcome. In between, the provider is asked under a key
// that follows from what was begun, never from the claim or the attempt: then it executes the
// request once, however often it is asked. A retry takes the next attempt, and only the newest
// attempt settles. [Keys.Operate] does all three, and [Keys.Resume] does it for operations whose
// clients do not come back.
//
// An unknown outcome is no failure. The request is sent again as long as the provider remembers
// its key, and then only looked up. What cannot be decided like this is held ([Keys.Hold]), for a
// person.
//
// # Older copies of a refused request
//
// A refusal for now keeps no answer, so that the client may correct the request. But a proxy may
// have sent a copy to a process that is paused, and this copy must not act after the client has
// seen the refusal. So the key's row remembers the time of the refused attempt for an hour, and
// only a later attempt claims it. See package arrival for these times.
//
// The files of this package, from the bottom: templates.go fills the table's name into the SQL,
// which is beside the methods that send it; pipeline.go and tx.go are a transaction; once.go,
// kept.go, attempt.go and waiting.go are its uses; provider.go and http.go are for convenience, and
// use nothing that is not exported but the table's rows.
package authority
