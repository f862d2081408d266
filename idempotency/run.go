package idempotency

import (
	"context"
	"maps"
	"net/http"
	"time"
)

// run has the handler answer, in a context that outlives the client's connection.
func (x *exchange) run(next http.Handler) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(x.r.Context()), x.policy.Deadline)
	defer stop()
	ctx, cancel := x.start(ctx)
	defer cancel(nil)
	x.out = &capture{
		w: x.w, dialect: x.dialect, keep: x.headers, limit: x.maxResponse, overflow: x.overflow, replayed: x.claim.replayed.Load,
		outer: x.headers.pick(x.w.Header()),
	}
	defer x.giveUp()
	x.handle(next, unencoded(x.r.WithContext(ctx)))
	x.respond(ctx)
}

// unencoded asks for an answer that every client can read: a client that repeats the request may
// accept other encodings. Middleware further out may compress the answer and its replays. A handler
// that encodes its answer nevertheless is replayed to the clients that accept the encoding.
func unencoded(r *http.Request) *http.Request {
	if len(r.Header["Accept-Encoding"]) > 0 {
		r.Header = maps.Clone(r.Header)
		r.Header["Accept-Encoding"] = []string{"identity"}
	}
	return r
}

func (x *exchange) handle(next http.Handler, r *http.Request) {
	defer func(began time.Time) {
		x.working = time.Since(began)
		x.takeBack(r)
	}(time.Now())
	next.ServeHTTP(x.out, r)
}

// takeBack does with the handler's copy of the request what middleware further out and net/http do
// with their own: they read the pattern of the route, and remove the files of a parsed form.
func (x *exchange) takeBack(r *http.Request) {
	x.r.Pattern = r.Pattern
	if r.MultipartForm != nil && x.r.MultipartForm == nil {
		_ = r.MultipartForm.RemoveAll() // net/http does not report it either
	}
}

// respond finishes the record, and only then sends the answer: a client that has seen it gets
// it again. A handler that has written nothing when its context ended has no answer, and not an
// empty 200. Nor has one that wrote another number of bytes than it had declared.
func (x *exchange) respond(ctx context.Context) {
	if x.out.code == 0 && ctx.Err() != nil {
		e := noAnswer(context.Cause(ctx))
		x.claim.decide(x.fateOf(e.Status, x.out.Header()))
		x.write(x.out, e)
	}
	x.out.WriteHeader(http.StatusOK) // unless the handler has
	if !x.out.isWhole(x.r.Method) {
		panic(http.ErrAbortHandler) // as net/http breaks the connection off; see fateOfPart
	}
	x.returned = true
	if !x.finished {
		response := x.out.response()
		if x.claim.omitted.Load() {
			response = x.out.withoutBody()
		}
		x.finish(x.r.Context(), x.fateOf(x.out.code, x.out.header), response)
	}
	x.observe(x.r, x.concludeWork())
	if !x.out.streaming {
		_ = x.out.send() // the client may be gone
	}
}

// overflow finishes the record of an answer that is kept but too large. Another one still holds the
// key until the handler returns.
func (x *exchange) overflow() {
	if fate := x.fateOf(x.out.code, x.out.header); x.keeps(fate) {
		x.finish(x.r.Context(), fate, x.out.withoutBody())
	}
}

// giveUp runs when the handler panicked, or ended its goroutine: the record is ended, and the panic
// goes on with its own stack.
func (x *exchange) giveUp() {
	if x.returned {
		return
	}
	if !x.finished {
		x.finish(x.r.Context(), x.fateOfPart(), Response{})
	}
	x.observe(x.r, x.concludeWork())
}
