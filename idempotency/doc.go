// Package idempotency makes HTTP handlers safe to retry, and jobs, messages and tool calls:
// whatever times out, crashes or is sent twice, one key has one effect and one answer.
//
// A client that got no answer cannot know whether its request was executed. It therefore
// sends each request with a key of its own choice in the Idempotency-Key header, and repeats
// the request with the same key until it has an answer. The middleware lets the first one
// through and answers the others: with 409 while the first is still running, with the kept
// response if there is one, and with 422 if that response is another request's.
//
//	store := breaker.New(redisstore.New(client))
//	keys := idempotency.New(store,
//		func(r *http.Request) *idempotency.Policy {
//			switch r.Method {
//			case http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete:
//				return &idempotency.Policy{Required: true, TTL: 48 * time.Hour}
//			}
//			return nil // GET changes nothing
//		},
//		idempotency.WithScope(accountOf))
//	http.ListenAndServe(addr, authenticate(keys.Handler(mux)))
//
// It is plain net/http middleware: with chi, r.Use(keys.Handler). Echo and Gin need the
// adapters in the recipes folder.
//
// # Order of middleware
//
// Outside: recovery from panics, request IDs, logs, traces, CORS, compression, and then
// authentication, rate limits and validation, so that a request that they refuse uses no key. They
// also see replays and refusals, and a compressor can ask what each client accepts: the handler is
// asked for an answer without encoding. Inside: what rewrites paths, and handlers.
//
// Validation rejects by [Middleware.Reject]: a release with stricter rules must not reject the
// retry of a request that the release before has executed.
//
// Recovery inside would make a kept success of a panic after a half-written answer. A time limit on
// the request's context, such as chi's Timeout, has no effect outside, because the context of a
// handler with a key goes on without the client: [Policy].Deadline is its time limit.
//
// # What happens to a request
//
// The key is acquired in one step at the [Store], which writes a record with a random [Owner]
// under a lease. While the handler runs, a heartbeat renews the lease every third of it: a
// slow handler keeps its key, and the key of a dead holder is free within a lease. If the
// lease is lost, or may be about to end, the handler's context is cancelled, and
// context.Cause returns [ErrLost] or [ErrUnavailable].
//
// The handler's context does not end when the client disconnects, but at [Policy].Deadline:
// the answer is kept for the client that comes back.
//
// The response is held back until the record is completed, and only then sent: an answer that
// a client has seen is answered again, byte for byte. Therefore handlers cannot flush, hijack
// or send informational responses and trailers. A response over [WithMaxResponse] is streamed
// once its record is completed without the body; a retry then gets 409 [CodeResponseNotKept].
//
//	answer                                         kept        a retry
//	2xx, 3xx                                       Completed   gets it again
//	4xx                                            Failed      gets it again
//	307, 308, 401, 403, 404, 405, 415              no          runs the handler
//	408, 425, 429, 5xx                             no          runs the handler
//	none: panic (as 500), context ended (as 503)   no          runs the handler
//	one that is kept, and breaks off               no          409, then runs the handler
//
// The statuses from 307 to 415 come from routers and middleware inside, and another replica may
// know the route. [Policy].Fate makes other choices, and [Claim.Keep], [Claim.Release] and
// [Claim.Unknown] make them for one answer: what an authority keeps must be kept here, too.
//
// A handler that returns when its context has ended, and has written nothing, has no answer: the
// client gets 503 [CodeRequestTimeout]. A handler that is done must therefore say so; WriteHeader
// is enough. A panic after the answer has passed [WithMaxResponse] does not release the key: the
// client has seen the status, so a retry gets 409 [CodeResponseNotKept].
//
// # An effect that goes on behind a 5xx
//
// A retry runs the handler at once after a 5xx, so a handler must have ended what it began. Two of
// net/http's do not:
//
// An [http.TimeoutHandler] answers 503 while its handler goes on. [Middleware.Handler] rejects one
// directly inside. Deeper inside it is not seen, nor is a framework's: use [Policy].Deadline.
//
// An [net/http/httputil.ReverseProxy] answers 502, or breaks off, while its upstream may go on. If
// its ErrorHandler writes nothing after the context has ended, the middleware answers 503. Such a
// route says that these outcomes are unknown. net/http's Transport sends a request without a body
// again by itself if it has an Idempotency-Key, so the proxy needs Once of package transport:
//
//	proxy.Transport = transport.Once(http.DefaultTransport)
//	policy := idempotency.Policy{
//		UnknownFor: 2 * time.Minute, // longer than the upstream takes
//		Fate: func(status int, _ http.Header) idempotency.Fate {
//			switch status {
//			case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
//				return idempotency.FateUnknown
//			}
//			return idempotency.FateByDefault
//		},
//	}
//
// The key stays in progress for that time, also if the process dies, and retries get 409. Then a
// retry runs the handler: an authority finds what became of the request. Without one the guarantee
// is only that two executions never run within that time. A proxy passes the key on, so an upstream
// that takes keys is such an authority.
//
// # Requests within requests
//
// A handler may send parts of a batch through the middleware, in the same process and with its own
// context. A part with another key gets a claim of its own. A part with the same key, or without
// one, runs under the claim of the batch: give each part that has an effect a key. Package
// authority refuses a second operation under one claim, see [Claim.Operate].
//
// chi keeps the parameters of the route in the context, and changes them. Give each part
// context.WithValue(ctx, chi.RouteCtxKey, nil), or a part acts on another object than it names.
//
// # Work that is not a handler
//
// [Do] runs a function under a key, with the same leases, heartbeat, waiting and [Claim]. Its
// result is kept, and an error only if it is [Final]. Where callers have no key, or a new one with
// each try, [Content] makes one of the request; [Policy].KeyFrom does so for HTTP.
//
// # What it cannot do alone
//
// A store and a database cannot commit together. If a process dies after the handler's commit
// and before the record is completed, the lease ends and a retry runs the handler again. A
// store that loses writes forgets keys. If a second execution must not happen, write the key
// where the change is: take the [Claim] from the request's context and insert (scope, key,
// fingerprint, status, response) under a unique index in the same transaction. If the insert
// finds the row, answer from it after calling [Claim.Replayed], [Claim.Keep] and [Claim.KeepFor]:
// the database is the authority, and the middleware answers most retries without it. Routes with
// such an authority may set [FailOpen] and go on working while the store is down.
package idempotency
