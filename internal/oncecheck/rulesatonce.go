package oncecheck

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

// sentAtOnce sends a request n times side by side.
func sentAtOnce(n int) func(*probe) {
	return func(p *probe) {
		p.counted(func() {
			_, last := p.atOnce(n, p.fresh())
			answered := slices.DeleteFunc(slices.Clone(last), func(e Exchange) bool { return !e.succeeded() })
			if len(answered) == 0 {
				p.broken(last[:1], "nobody got an answer that is a success; the last one was %s", last[0].told())
			}
			for _, e := range answered {
				if why := p.difference(answered[0], e); why != "" {
					p.broken([]Exchange{answered[0], e}, "two clients of one request got different answers: %s", why)
				}
			}
		})
	}
}

// crowd is how many requests at once make some of them wait.
const crowd = 8

// politeRetry requires that everybody who is told to retry gets the answer in the end.
func politeRetry(p *probe) {
	r := p.fresh()
	first, last := p.atOnce(crowd, r)
	began, answer := time.Now(), p.outwait("the same request afterwards", r)
	if !answer.succeeded() {
		p.broken([]Exchange{answer}, "%s after all of them were answered the request still got %s",
			time.Since(began).Round(time.Second/10), answer.told())
	}
	waited := false
	for i := range last {
		told := first[i].busy() || first[i].status == 0
		waited = waited || told
		if why := p.difference(answer, last[i]); why != "" {
			p.broken([]Exchange{answer, first[i], last[i]}, "a client that retried politely did not get the answer: %s", why)
		}
	}
	if !waited {
		p.undecided("nobody was told to retry; a request that takes longer would show it")
	}
}

// retryAfter requires the header where a client is told to retry, and that it is true.
func retryAfter(p *probe) {
	r := p.fresh()
	var told *Exchange
	for _, e := range p.burst(crowd, r) {
		if (e.busy() || e.status == http.StatusConflict) && (told == nil || told.header.Get("Retry-After") != "") {
			told = &e
		}
	}
	if told == nil {
		p.undecided("nobody was told to retry; a request that takes longer would show it")
	}
	seconds, err := strconv.Atoi(told.header.Get("Retry-After"))
	if err != nil {
		p.broken([]Exchange{*told}, "%s without Retry-After in seconds: the client has to guess", told.told())
	}
	wait := time.Duration(seconds) * time.Second
	if wait > p.cfg.Patience {
		p.undecided("Retry-After is %s, which is longer than --patience", wait)
	}
	p.pause(wait)
	if again := p.send("the same request, after Retry-After", r); again.busy() {
		p.broken([]Exchange{*told, again}, "Retry-After was %s, and after it the answer was %s again", wait, again.told())
	}
}
