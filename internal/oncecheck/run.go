// Package oncecheck finds out whether an API that has idempotency keys keeps what they promise.
// It gets one request that changes something, sends it in the ways in which retries happen, and
// returns a verdict for each rule with the requests and answers as they were on the wire.
//
// It is a client of any service, and knows nothing of this one. The rules are in rules.go,
// each with a page in pages, and checks.go says how each is checked.
package oncecheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Outcome is what a rule found.
type Outcome string

// The outcomes.
const (
	Holds      Outcome = "holds"
	Broken     Outcome = "broken"
	NotDecided Outcome = "not decided"

	failed Outcome = "failed" // the run cannot go on; no report has it
)

// Verdict is the outcome of one rule, with its reason and its evidence.
type Verdict struct {
	Rule     string     `json:"rule"`
	Claim    string     `json:"claim"`
	Outcome  Outcome    `json:"outcome"`
	Reason   string     `json:"reason,omitempty"` // why it is broken, or what is missing to decide
	Evidence []Exchange `json:"evidence,omitempty"`
}

// Report is what a run found.
type Report struct {
	URL      string        `json:"url"`
	Method   string        `json:"method"`
	Requests int           `json:"requests"`
	Elapsed  time.Duration `json:"elapsed"` // nanoseconds
	Verdicts []Verdict     `json:"verdicts"`
	Dialects []Trait       `json:"dialects,omitempty"` // what was seen of them
}

// Count returns how many rules have an outcome.
func (r Report) Count(o Outcome) (n int) {
	for _, v := range r.Verdicts {
		if v.Outcome == o {
			n++
		}
	}
	return n
}

// Run checks the rules, one after the other: nobody else may cause effects meanwhile. Its error
// says, in a sentence for people, why nothing could be found out.
func Run(ctx context.Context, cfg Config) (Report, error) {
	if err := cfg.check(); err != nil {
		return Report{}, err
	}
	defer cfg.Progress("")
	p := newProbe(ctx, &cfg)
	defer p.stop(nil)
	report := Report{URL: cfg.Request.URL, Method: cfg.Request.Method}
	if v := p.check(Rule{"", tryOut}); v.Outcome == failed {
		return report, errors.New(v.Reason)
	}
	for _, rule := range Rules {
		if len(cfg.Only) > 0 && !slices.Contains(cfg.Only, rule.Name) {
			continue
		}
		cfg.Progress("checking " + rule.Name)
		v := p.check(rule)
		if v.Outcome == failed {
			return report, fmt.Errorf("rule %s: %s", rule.Name, v.Reason)
		}
		v.Rule, v.Claim = rule.Name, rule.Claim()
		report.Verdicts = append(report.Verdicts, v)
	}
	report.Dialects = traitsOf(p.shown)
	report.Requests, report.Elapsed = len(p.all), time.Since(p.began)
	return report, nil
}

// tryOut sends the request once, and fails if no rule could be decided with it.
func tryOut(p *probe) {
	before := p.effects()
	e := p.send("the request", p.fresh())
	p.failIf(e.status == 0, "the server did not answer (%s); is it running, is the URL right, and is --attempt (%s) long enough?",
		e.Error, p.cfg.Attempt)
	p.failIf(!e.succeeded(), "the request was answered with %s (%s); give one that succeeds", e.told(), oneLine(e.body))
	after := p.effects()
	p.failIf(p.cfg.Count != nil && after-before != 1,
		"the request succeeded, and the count went from %d to %d; give a way that counts its effects, and nobody else's", before, after)
}

// oneLine is the beginning of a text of others, for a sentence.
func oneLine(text string) string {
	return fmt.Sprintf("%.200s", strings.Join(strings.Fields(text), " "))
}
