package oncecheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

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
	c := newClient(&cfg)
	report := Report{URL: cfg.Request.URL, Method: cfg.Request.Method}
	if _, err := c.run(ctx, tryOut); err != nil {
		return report, err
	}
	for _, rule := range Rules {
		if len(cfg.Only) > 0 && !slices.Contains(cfg.Only, rule.Name) {
			continue
		}
		c.rule = rule.Name // no request is under way between two rules
		if cfg.Progress != nil {
			cfg.Progress(rule.Name)
		}
		v, err := c.run(ctx, rule.check)
		if errors.Is(err, errUsedUp) {
			v, err = Verdict{Outcome: NotDecided, Reason: err.Error()}, nil
		}
		if err != nil {
			return report, fmt.Errorf("rule %s: %w", rule.Name, err)
		}
		v.Rule, v.Claim = rule.Name, rule.Claim()
		report.Verdicts = append(report.Verdicts, v)
	}
	report.Dialects = traitsOf(c.all, cfg.Contract)
	report.Requests, report.Elapsed = len(c.all), time.Since(c.began)
	return report, nil
}

// run checks one rule, whose verdict ends it.
func (c *client) run(ctx context.Context, check func(*probe)) (v Verdict, err error) {
	p := &probe{ctx: ctx, client: c, cfg: c.cfg}
	defer func() {
		switch ended := recover().(type) {
		case nil:
			v.Outcome = Holds
		case Verdict:
			if v = ended; v.Outcome == Broken && v.Evidence == nil {
				v.Evidence = p.shown
			}
		case failure:
			err = ended.error
		default:
			panic(ended)
		}
	}()
	check(p)
	return v, nil
}

// oneLine is the beginning of a text of others, for a sentence.
func oneLine(text string) string {
	return fmt.Sprintf("%.200s", strings.Join(strings.Fields(text), " "))
}

// tryOut sends the request once, and fails if no rule could be decided with it.
func tryOut(p *probe) {
	before, counts := p.effects()
	e := p.send("the request", p.fresh())
	switch {
	case e.status == 0:
		p.must(fmt.Errorf("the server did not answer (%s); is it running, is the URL right, and is --attempt (%s) long enough?",
			e.Error, p.cfg.Attempt))
	case !e.succeeded():
		remedy := "give one that succeeds"
		if strings.Contains(strings.ToLower(e.body), "uuid") {
			remedy += ", or add --uuid-keys if its keys have to be UUIDs"
		}
		p.must(fmt.Errorf("the request was answered with %s (%s); %s", e.told(), oneLine(e.body), remedy))
	}
	if after, _ := p.effects(); counts && after-before != 1 {
		p.must(fmt.Errorf("the request succeeded, and the count went from %d to %d; give a way that counts its effects, and nobody else's",
			before, after))
	}
}
