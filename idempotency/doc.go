// Package idempotency makes HTTP handlers safe to retry: whatever times out,
// crashes or is sent twice, one key has one effect and one answer.
//
// A client that got no answer can't know whether its request was executed. It
// therefore sends each request with a key of its own choice in the
// Idempotency-Key header, and repeats the request with the same key until it
// has an answer. The middleware lets the first one through and answers the
// others: with the kept response once there is one, with 409 while the first is
// still running, and with 422 if the key comes with another request.
//
//	store := redisstore.New(client)
//	keys := idempotency.New(store,
//		func(r *http.Request) *idempotency.Policy {
//			switch r.Method {
//			case http.MethodPost, http.MethodPatch:
//				return &idempotency.Policy{Required: true, TTL: 48 * time.Hour}
//			}
//			return nil // GET, PUT and DELETE are idempotent by nature
//		},
//		idempotency.WithScope(accountOf))
//	http.ListenAndServe(addr, authenticate(keys.Handler(mux)))
//
// It is plain net/http middleware: with chi, r.Use(keys.Handler). Put it inside
// of authentication, rate limits and validation, so that a request they refuse
// burns no key, and outside of what compresses responses or rewrites paths.
//
// # What happens to a request
//
// The key is acquired in one step at the [Store], which writes a record with a
// random [Owner] under a lease. While the handler runs, a heartbeat renews the
// lease every third of it, so that a slow handler keeps its key, and a key
// whose holder died is free within a lease. If the lease is lost, or may be
// about to end, the handler's context is cancelled, and context.Cause says why:
// [ErrLost] or [ErrUnavailable].
//
// The handler's context doesn't end when the client disconnects, but at
// [Policy].Deadline: the answer is kept for the client that comes back.
//
// The response is held back until the record is completed, and only then sent:
// an answer that somebody has seen will be given again, byte by byte. Therefore
// handlers can't flush, hijack or send informational responses and trailers.
// Responses over [WithMaxResponse] stream once their record is completed
// without a body; a retry then gets 409 [CodeResponseNotKept].
//
//	answer                   kept        a retry
//	2xx, 3xx                 Completed   gets it again
//	4xx                      Failed      gets it again
//	408, 425, 429, 5xx       no          runs the handler
//	panic                    no          runs the handler
//	after [Claim.Release]    no          runs the handler
//
// # What it can't do alone
//
// A store and a database can't commit together. When a process dies after the
// handler's commit and before the record is completed, the lease ends and a
// retry runs the handler again. A store that loses writes forgets keys. Where a
// second execution would hurt, write the key down where the change is: take the
// [Claim] from the request's context and insert (scope, key, fingerprint, status,
// response) under a unique index in the same transaction. If the insert finds
// the row, answer from it after calling [Claim.Replayed]; the middleware then
// is the fast path, and the database decides. Routes with such an authority may
// also set [FailOpen] and go on working while the store is down.
package idempotency
