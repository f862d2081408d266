package oncecheck

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/oncepay/oncepay/idempotency/transport"
)

// probe is what a rule works with: requests, their retries, and the number of effects. A rule's
// check ends by panicking with failure when the run cannot go on; Run recovers it.
type probe struct {
	ctx    context.Context
	client *client
	cfg    *Config
	shown  []Exchange // the evidence so far
	mu     sync.Mutex
}

// The pauses of a retrying client without a Retry-After.
const firstPause, longestPause = 100 * time.Millisecond, 2 * time.Second

// failure ends a run: the service or a command did not do what every rule needs.
type failure struct{ error }

// fresh returns the request under a new key, and with texts of its own.
func (p *probe) fresh() Request { return p.keyed(p.cfg.newKey()) }

// keyed returns the request under a key, and with texts of its own.
func (p *probe) keyed(key string) Request {
	return p.cfg.Request.with(letters()).under(p.cfg.KeyHeader, key)
}

// under returns the request with a key.
func (r Request) under(header, key string) Request {
	r.Header = r.Header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set(header, key)
	return r
}

// difference says what is different between two answers to one request, or nothing.
func (p *probe) difference(first, again Exchange) string {
	if p.client.renews && first.succeeded() && again.succeeded() {
		return ""
	}
	return first.difference(again)
}

// send sends a request once.
func (p *probe) send(note string, r Request) Exchange { return p.sendBy(note, r, way{}) }

func (p *probe) sendBy(note string, r Request, w way) Exchange {
	p.must(p.client.reserve(p.ctx, 1))
	return p.show(p.client.exchange(p.ctx, note, r, w))
}

func (p *probe) show(e Exchange) Exchange {
	p.must(p.ctx.Err())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = append(p.shown, e)
	return e
}

func (p *probe) must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// retry repeats a request as a polite client does, and returns the last answer.
func (p *probe) retry(note string, r Request) Exchange {
	last, err := p.politely(note, r)
	p.must(err)
	return last
}

// outwait is retry for a request that may still be executed: a 409 is no answer to it, whether or
// not it asks for a retry.
func (p *probe) outwait(note string, r Request) Exchange {
	until, wait := time.Now().Add(p.cfg.Patience), firstPause
	for {
		last := p.retry(note, r)
		if last.status != http.StatusConflict || time.Now().After(until) {
			return last
		}
		p.must(pause(p.ctx, wait))
		wait = min(2*wait, longestPause)
	}
}

// politely is retry for a goroutine of its own, which must not panic.
func (p *probe) politely(note string, r Request) (Exchange, error) {
	at := &recorder{probe: p, note: note, request: r}
	retrying := &transport.Transport{
		Base: at, MaxAttempts: p.cfg.MaxRequests, MaxElapsed: p.cfg.Patience, AttemptTimeout: p.cfg.Attempt,
		BaseDelay: firstPause, MaxDelay: longestPause, Wait: -1,
	}
	q, err := r.request(p.ctx, way{})
	if err != nil {
		return Exchange{}, err
	}
	// The transport knows only this header, and adds a key unless it is there. The request that is
	// sent has the header that the service knows.
	q.Header.Set(DefaultKeyHeader, r.Header.Get(p.cfg.KeyHeader))
	if answer, err := retrying.RoundTrip(q); err == nil {
		_, _ = io.Copy(io.Discard, answer.Body) // the recorder has it
		_ = answer.Body.Close()
	}
	return at.last, errors.Join(at.err, p.ctx.Err())
}

// recorder makes the attempts of a retrying client.
type recorder struct {
	probe   *probe
	note    string
	request Request
	last    Exchange
	err     error // why the run cannot go on
}

// RoundTrip implements [http.RoundTripper].
func (a *recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	if a.err = a.probe.client.reserve(q.Context(), 1); a.err != nil {
		return nil, a.err
	}
	a.last = a.probe.client.exchange(q.Context(), a.note, a.request, way{})
	a.probe.mu.Lock()
	a.probe.shown = append(a.probe.shown, a.last)
	a.probe.mu.Unlock()
	if a.last.status == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{
		StatusCode: a.last.status, Header: a.last.header.Clone(), Request: q, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(strings.NewReader(a.last.body)), ContentLength: int64(len(a.last.body)),
	}, nil
}

// atOnce sends one request many times side by side, and each again as long as its answer asks for
// it. It returns the first answers and the last ones.
func (p *probe) atOnce(n int, r Request) (first, last []Exchange) {
	p.must(p.client.reserve(p.ctx, n))
	first, last = make([]Exchange, n), make([]Exchange, n)
	var ready, sent sync.WaitGroup
	ready.Add(n)
	for i := range n {
		sent.Go(func() {
			ready.Done()
			ready.Wait()
			first[i] = p.client.exchange(p.ctx, noteAtOnce, r, way{})
		})
	}
	sent.Wait()
	failed := make([]error, n)
	for i, e := range first {
		if last[i] = p.show(e); e.busy() || e.status == 0 {
			sent.Go(func() {
				last[i], failed[i] = p.politely("the retry of one that was not answered for good", r)
			})
		}
	}
	sent.Wait()
	p.must(errors.Join(failed...))
	return first, last
}

// effects counts them; the second value is false if nothing counts.
func (p *probe) effects() (int64, bool) {
	if p.cfg.Count == nil {
		return 0, false
	}
	n, err := p.cfg.Count(p.ctx)
	p.must(err)
	return n, true
}
