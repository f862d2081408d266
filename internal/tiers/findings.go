package tiers

import (
	"fmt"
	"slices"
)

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
func (v View) Findings() (all []Finding) {
	add := func(promise string, compare func(View) (Verdict, string)) {
		verdict, text := compare(v)
		all = append(all, Finding{promise, verdict, text})
	}
	if v.asked("Redis", "PostgreSQL") && (v.Record != nil || v.Authority != nil) {
		add("One key has one answer, and PostgreSQL has it.", oneAnswer)
	}
	if v.Payment != nil && v.asked("provider") {
		add("One key has at most one charge.", oneCharge)
		add("An outcome that is unknown is never reported as a failure.", moneyStored)
	}
	if v.Payment != nil && v.Payment.Status != "processing" {
		add("Every effect is announced by one event.", announcedOnce)
	}
	return all
}

// asked reports whether the tiers answered.
func (v View) asked(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return v.Errors[name] != "" })
}

// oneAnswer compares the accelerator with the authority.
func oneAnswer(v View) (Verdict, string) {
	record, row := v.Record, v.Authority
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
func oneCharge(v View) (Verdict, string) {
	asked, n := 0, v.charged()
	for _, charge := range v.Charges {
		asked += charge.Attempts
	}
	text := fmt.Sprintf("The provider was asked %s and took the money %s.", times(asked), times(n))
	if n > 1 {
		return Differ, text
	}
	return Agree, text
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
func moneyStored(v View) (Verdict, string) {
	charged := v.charged() > 0
	switch {
	case v.Payment.Status == "processing" && charged:
		return Pending, "The provider has charged, and the outcome is not stored yet. A retry, a provider event or the reconciler stores it."
	case v.Payment.Status == "processing":
		return Pending, "The payment is processing."
	case (v.Payment.Status == "succeeded") != charged:
		return Differ, fmt.Sprintf("The payment is %s, and the provider took the money %s.", v.Payment.Status, times(v.charged()))
	}
	return Agree, fmt.Sprintf("The payment is %s, settled by attempt %d. The provider says the same.", v.Payment.Status, v.Payment.Attempt)
}

// announcedOnce counts the events of what the payment came to.
func announcedOnce(v View) (Verdict, string) {
	wanted, n, published := "payment."+v.Payment.Status, 0, true
	for _, event := range v.Events {
		if event.Type == wanted {
			n++
			published = published && event.Published
		}
	}
	switch {
	case n == 0 || (n > 1 && v.Payment.Status == "succeeded"):
		return Differ, fmt.Sprintf("The outbox has %s %s.", wanted, times(n))
	case !published:
		return Pending, wanted + " is in the outbox, and not yet in the stream."
	}
	return Agree, wanted + " is in the outbox once, and in the stream."
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
