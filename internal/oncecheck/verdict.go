package oncecheck

import "fmt"

// Outcome is what a rule found.
type Outcome string

// The outcomes.
const (
	Holds      Outcome = "holds"
	Broken     Outcome = "broken"
	NotDecided Outcome = "not decided"
)

// Verdict is the outcome of one rule, with its reason and its evidence.
type Verdict struct {
	Rule     string     `json:"rule"`
	Claim    string     `json:"claim"`
	Outcome  Outcome    `json:"outcome"`
	Reason   string     `json:"reason,omitempty"` // why it is broken, or what is missing to decide; of a rule that holds, what was learned
	Evidence []Exchange `json:"evidence,omitempty"`
}

// broken ends a rule. It keeps the exchanges that show it, which are the shortest way to see it
// again. Without any, all exchanges of the rule are kept.
func (p *probe) broken(evidence []Exchange, format string, args ...any) {
	panic(Verdict{Outcome: Broken, Reason: fmt.Sprintf(format, args...), Evidence: evidence})
}

// undecided ends a rule.
func (p *probe) undecided(format string, args ...any) {
	panic(Verdict{Outcome: NotDecided, Reason: fmt.Sprintf(format, args...)})
}

const uncounted = "the answers show no second effect, but nothing counts the effects; name a way with --count, --count-command or --count-sql"
