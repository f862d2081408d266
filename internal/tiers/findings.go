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
func (v View) Findings() (all []Finding) {
	add := func(promise string, verdict Verdict, text string, values ...any) {
		all = append(all, Finding{promise, verdict, fmt.Sprintf(text, values...)})
	}
	if v.Errors["Redis"] == "" && v.Errors["PostgreSQL"] == "" && (v.Record != nil || v.Authority != nil) {
		verdict, text := v.oneAnswer()
		add("One key has one answer, and PostgreSQL has it.", verdict, "%s", text)
	}
	paid := v.Payment
	if paid == nil {
		return all
	}
	if v.Errors["provider"] == "" {
		asked, taken := 0, 0
		for _, charge := range v.Charges {
			if asked += charge.Attempts; charge.Status == "succeeded" {
				taken++
			}
		}
		verdict := Agree
		if taken > 1 {
			verdict = Differ
		}
		add("One key has at most one charge.", verdict, "The provider was asked %d × and took the money %d ×.", asked, taken)
		const known = "An outcome that is unknown is never reported as a failure."
		switch {
		case paid.Status == processing && taken > 0:
			add(known, Pending, "The provider has charged, and the outcome is not stored yet. A retry, a provider event or the reconciler stores it.")
		case paid.Status == processing:
			add(known, Pending, "The payment is processing.")
		case (paid.Status == "succeeded") != (taken > 0):
			add(known, Differ, "The payment is %s, and the provider took the money %d ×.", paid.Status, taken)
		default:
			add(known, Agree, "The payment is %s, settled by attempt %d. The provider says the same.", paid.Status, paid.Attempt)
		}
	}
	if paid.Status == processing {
		return all
	}
	const announced = "Every effect is announced by one event."
	event, n, published := "payment."+paid.Status, 0, true
	for _, e := range v.Events {
		if e.Type == event {
			n++
			published = published && e.Published
		}
	}
	switch {
	case n == 0 || (n > 1 && paid.Status == "succeeded"):
		add(announced, Differ, "The outbox has %s %d ×.", event, n)
	case !published:
		add(announced, Pending, "%s is in the outbox, and not yet in the stream.", event)
	default:
		add(announced, Agree, "%s is in the outbox once, and in the stream.", event)
	}
	return all
}

// processing is the status of a payment whose outcome is not stored.
const processing = "processing"

// oneAnswer compares the accelerator with the authority.
func (v View) oneAnswer() (Verdict, string) {
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
