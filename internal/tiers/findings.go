package tiers

import "fmt"

// Verdict is what a comparison of tiers says.
type Verdict string

// The verdicts. Pending is a difference that the design allows for a while, and says how it ends.
const (
	Agree   Verdict = "agree"
	Pending Verdict = "pending"
	Differ  Verdict = "differ"
)

// Finding is a promise, and what the tiers say about it for one key.
type Finding struct {
	Promise string
	Verdict Verdict
	Text    string
}

// Findings compares the tiers with each other. A tier that could not be asked, or that the key has
// nothing to do with, is compared with nothing.
func (v View) Findings() []Finding {
	var all []Finding
	for _, compare := range []func(View) (Finding, bool){oneAnswer, oneCharge, moneyStored, announcedOnce} {
		if finding, ok := compare(v); ok {
			all = append(all, finding)
		}
	}
	return all
}

// asked reports whether the tiers answered.
func (v View) asked(names ...string) bool {
	for _, name := range names {
		if v.Errors[name] != "" {
			return false
		}
	}
	return true
}

// oneAnswer compares the accelerator with the authority.
func oneAnswer(v View) (Finding, bool) {
	const promise = "One key has one answer, and PostgreSQL has it."
	if !v.asked("Redis", "PostgreSQL") || (v.Record == nil && v.Authority == nil) {
		return Finding{}, false
	}
	verdict, text := compareAnswers(v.Record, v.Authority)
	return Finding{promise, verdict, text}, true
}

func compareAnswers(record *Record, row *Authority) (Verdict, string) {
	switch {
	case record == nil:
		return Pending, "Redis does not know the key. The next retry asks PostgreSQL, which costs one more round trip and changes no outcome."
	case row == nil && record.Status == "InProgress":
		return Pending, "An attempt runs, or died before it wrote anything. The key is free when the lease ends."
	case row == nil:
		return Differ, "Redis has an answer that PostgreSQL does not have."
	case record.Fingerprint != row.Fingerprint:
		return Differ, "The two tiers have different requests under this key."
	case record.Status == "InProgress":
		return Pending, "Redis says that an attempt runs. It finishes, or its lease ends and a retry takes over."
	case row.ResponseStatus == 0:
		return Differ, "Redis has an answer, and PostgreSQL says that the key is " + row.Status + "."
	case row.Status == "expired":
		return Agree, "The answer has expired. The tombstone refuses a second effect."
	case record.ResponseStatus != row.ResponseStatus || record.BodyHash != row.BodyHash:
		return Differ, "The two tiers have different answers."
	}
	return Agree, fmt.Sprintf("Both have the same answer, byte for byte: status %d.", row.ResponseStatus)
}

// oneCharge counts the effects at the provider.
func oneCharge(v View) (Finding, bool) {
	const promise = "One key has at most one charge."
	if v.Payment == nil || !v.asked("provider") {
		return Finding{}, false
	}
	n := v.charged()
	asked := 0
	for _, charge := range v.Charges {
		asked += charge.Attempts
	}
	text := fmt.Sprintf("The provider was asked %s and took the money %s.", times(asked), times(n))
	if n > 1 {
		return Finding{promise, Differ, text}, true
	}
	return Finding{promise, Agree, text}, true
}

// charged counts the charges that succeeded.
func (v View) charged() (n int) {
	for _, charge := range v.Charges {
		if charge.Status == "succeeded" {
			n++
		}
	}
	return n
}

// moneyStored compares the payment with the charge.
func moneyStored(v View) (Finding, bool) {
	const promise = "An outcome that is unknown is never reported as a failure."
	if v.Payment == nil || !v.asked("provider") {
		return Finding{}, false
	}
	charged := v.charged() > 0
	switch {
	case v.Payment.Status == "processing" && charged:
		return Finding{promise, Pending, "The provider has charged, and the outcome is not stored yet. A retry, a provider event or the reconciler stores it."}, true
	case v.Payment.Status == "processing":
		return Finding{promise, Pending, "The payment is processing."}, true
	case (v.Payment.Status == "succeeded") != charged:
		return Finding{promise, Differ, fmt.Sprintf("The payment is %s, and the provider took the money %s.", v.Payment.Status, times(v.charged()))}, true
	}
	return Finding{promise, Agree, fmt.Sprintf("The payment is %s, settled by attempt %d. The provider says the same.", v.Payment.Status, v.Payment.Attempt)}, true
}

// announcedOnce counts the events of what the payment came to.
func announcedOnce(v View) (Finding, bool) {
	const promise = "Every effect is announced by one event."
	if v.Payment == nil || v.Payment.Status == "processing" {
		return Finding{}, false
	}
	wanted, n, published := "payment."+v.Payment.Status, 0, true
	for _, event := range v.Events {
		if event.Type == wanted {
			n++
			published = published && event.Published
		}
	}
	switch {
	case n == 0 || (n > 1 && v.Payment.Status == "succeeded"):
		return Finding{promise, Differ, fmt.Sprintf("The outbox has %s %s.", wanted, times(n))}, true
	case !published:
		return Finding{promise, Pending, wanted + " is in the outbox, and not yet in the stream."}, true
	}
	return Finding{promise, Agree, wanted + " is in the outbox once, and in the stream."}, true
}

func times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}
