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

func holds() Verdict { return Verdict{Outcome: Holds} }

// broken keeps the exchanges that show it, which are the shortest way to see it again. Without
// any, all exchanges of the rule are kept.
func broken(evidence []Exchange, format string, args ...any) Verdict {
	return Verdict{Outcome: Broken, Reason: fmt.Sprintf(format, args...), Evidence: evidence}
}

func notDecided(format string, args ...any) Verdict {
	return Verdict{Outcome: NotDecided, Reason: fmt.Sprintf(format, args...)}
}

const uncounted = "the answers show no second effect, but nothing counts the effects; name a way with --count, --count-command or --count-sql"
