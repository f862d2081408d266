package oncecheck

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"time"
)

// sentAtOnce sends a request n times side by side.
func sentAtOnce(n int) func(*probe) {
	return func(p *probe) {
		_, last := p.atOnce(n, p.fresh())
		good := slices.DeleteFunc(last, func(e Exchange) bool { return !e.succeeded() })
		p.brokenIf(len(good) == 0, "nobody got an answer that is a success")
		for _, e := range good {
			p.same("two clients of one request got different answers: ", good[0], e)
		}
	}
}

// crowd is how many requests at once make some of them wait.
const crowd = 8

const notTold = "nobody was told to retry; a request that takes longer would show it"

// politeRetry requires that everybody who is told to retry gets the answer in the end.
func politeRetry(p *probe) {
	r := p.fresh()
	first, last := p.atOnce(crowd, r)
	answer := p.outwait("the same request afterwards", r)
	for _, e := range last {
		p.same("a client that retried politely did not get the answer: ", answer, e)
	}
	p.undecidedIf(!slices.ContainsFunc(first, Exchange.unanswered), notTold)
}

// retryAfter requires the header where a client is told to retry, and that it is true.
func retryAfter(p *probe) {
	r := p.fresh()
	told := slices.DeleteFunc(p.burst(crowd, r), func(e Exchange) bool { return !e.busy() && e.status != http.StatusConflict })
	p.undecidedIf(len(told) == 0, notTold)
	longest := slices.MaxFunc(told, func(a, b Exchange) int { return cmp.Compare(a.header.Get("Retry-After"), b.header.Get("Retry-After")) })
	pause, ok := longest.retryAfter()
	p.brokenIf(!ok, "%s without Retry-After in seconds: the client has to guess", longest.told())
	p.undecidedIf(pause > p.cfg.Patience, "Retry-After is %s, which is longer than --patience", pause)
	p.pause(pause)
	again := p.send("the same request, after Retry-After", r)
	p.brokenIf(again.busy(), "Retry-After was %s, and after it the answer was %s again", pause, again.told())
}

// again repeats a request whose answer did not arrive. A later retry gets the same answer.
func (p *probe) again(r Request) { p.sameAgain("the same request again", r, p.outwait("the retry", r)) }

// lostAnswer closes the connection after the first byte of the answer, in its middle, and before its
// last byte.
func lostAnswer(p *probe) {
	sample := p.send("the request, to know how long the answer is", p.fresh())
	for _, size := range []int{1, len(sample.Response) / 2, len(sample.Response) - 1} {
		p.counted(func() {
			r := p.fresh()
			p.sendBy(p.losing(size), "the request, whose answer is lost on the way", r)
			p.again(r)
		})
	}
}

// losing sends a request over a connection of its own, and closes that when so many bytes of the
// answer have arrived: without any, when the kernel has the request. A canceled context would be no
// substitute: it may end net/http's Transport before the request has left its buffer.
func (p *probe) losing(size int) way {
	return func(q *http.Request) (*http.Response, error) {
		conn, err := p.dial(q)
		if err != nil {
			return nil, err
		}
		defer func() { _ = conn.Close() }()
		defer context.AfterFunc(q.Context(), func() { _ = conn.Close() })()
		q.Close = true
		if err := q.Write(conn); err != nil {
			return nil, err
		}
		_, err = io.CopyN(io.Discard, conn, int64(size))
		return nil, cmp.Or(err, errors.New("the client closed the connection"))
	}
}

// dial connects to the server of a request.
func (p *probe) dial(q *http.Request) (net.Conn, error) {
	address := net.JoinHostPort(q.URL.Hostname(), cmp.Or(q.URL.Port(), q.URL.Scheme))
	if q.URL.Scheme == "https" {
		return (&tls.Dialer{Config: p.pool.TLSClientConfig}).DialContext(q.Context(), "tcp", address)
	}
	return new(net.Dialer).DialContext(q.Context(), "tcp", address)
}

// parts and betweenParts make a slow client: it needs a second for its body.
const (
	parts        = 4
	betweenParts = 200 * time.Millisecond
)

func slowClient(p *probe) {
	r := p.fresh()
	first := p.sendBy(p.slowly, "the request, sent slowly", r)
	if first.unanswered() { // it was too slow for the server, and its retry is not
		p.again(r)
		return
	}
	p.brokenIf(!first.succeeded(), "a client that sends slowly got %s", first.told())
	p.sameAgain("the same request again", r, first)
}

func (p *probe) slowly(q *http.Request) (*http.Response, error) {
	if q.ContentLength > 0 {
		q.Body = slowBody{q.Body, int(q.ContentLength+parts-1) / parts}
	}
	return p.pool.RoundTrip(q)
}

// slowBody pauses before each part.
type slowBody struct {
	io.ReadCloser

	size int // of a part, in bytes
}

func (b slowBody) Read(to []byte) (int, error) {
	time.Sleep(betweenParts)
	return b.ReadCloser.Read(to[:min(b.size, len(to))])
}

func clientLeaves(p *probe) {
	r := p.fresh()
	p.sendBy(p.losing(0), "the request, whose client leaves when it has sent it", r)
	p.pause(settling) // or the retry may overtake it
	p.again(r)
}
