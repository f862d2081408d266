package psp

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/oncepay/oncepay/internal/checkout"
)

// Decline codes of a request that is not in the provider's books.
const (
	invalidToken = "invalid_token" // the provider does not know the token, and keeps nothing under the key
	notCharged   = "not_charged"
	notRefunded  = "not_refunded"
)

// refundDeclines are the codes with which a refund is finally refused.
var refundDeclines = []string{"refund_exceeds_charge", "charge_not_refundable", "currency_mismatch"}

// reply is every field of the provider's answers that decides about money. Others are ignored, so
// that the provider may add some.
type reply struct {
	ID             string `json:"id"`
	IdempotencyKey string `json:"idempotency_key"`
	Amount         int64  `json:"amount"`
	Currency       string `json:"currency"`
	Reference      string `json:"reference"`
	Charge         string `json:"charge"` // of a refund
	Status         string `json:"status"`
	DeclineCode    string `json:"decline_code"`
	Error          struct {
		Code string `json:"code"`
	} `json:"error"`
}

// classifyCharge decides what a complete answer to a charge means.
func classifyCharge(status int, raw []byte, r checkout.ChargeRequest) checkout.GatewayResult {
	answer, err := parse(status, raw)
	if err != nil {
		return unknown(fmt.Errorf("charge at simulator: %w", err))
	}
	switch echoed := answer.echoes(askedOf(r)); {
	case isSuccess(status) && echoed && answer.Status == "succeeded":
		return checkout.GatewayResult{Outcome: checkout.OutcomeApproved, ProviderID: answer.ID}
	case status == http.StatusPaymentRequired && echoed && answer.Status == "declined" && answer.DeclineCode != "":
		return declined(answer.DeclineCode)
	case status == http.StatusBadRequest && answer.Error.Code == "unknown_token":
		return absent(invalidToken)
	}
	return unknown(fmt.Errorf("charge at simulator: %w", answer.surprise(status)))
}

// classifyRefund decides what a complete answer to a refund means.
func classifyRefund(status int, raw []byte, r checkout.RefundRequest) checkout.GatewayResult {
	answer, err := parse(status, raw)
	if err != nil {
		return unknown(fmt.Errorf("refund at simulator: %w", err))
	}
	switch echoed := answer.echoes(askedOfRefund(r)); {
	case isSuccess(status) && echoed && answer.Status == "succeeded":
		return checkout.GatewayResult{Outcome: checkout.OutcomeApproved, ProviderID: answer.ID}
	case status == http.StatusUnprocessableEntity && echoed && answer.Status == "declined" &&
		slices.Contains(refundDeclines, answer.DeclineCode):
		return declined(answer.DeclineCode)
	}
	return unknown(fmt.Errorf("refund at simulator: %w", answer.surprise(status)))
}

// askedOf is what an answer to the charge must repeat.
func askedOf(r checkout.ChargeRequest) reply {
	return reply{IdempotencyKey: r.IdempotencyKey, Amount: r.Amount.Amount, Currency: r.Amount.Currency, Reference: r.Reference}
}

// askedOfRefund is what an answer to the refund must repeat.
func askedOfRefund(r checkout.RefundRequest) reply {
	return reply{IdempotencyKey: r.IdempotencyKey, Amount: r.Amount.Amount, Currency: r.Amount.Currency,
		Reference: r.Reference, Charge: r.ChargeID}
}

// classifyListed returns what the list of a request's key says about it: absent with the code
// missing if the list is empty. A list that has more than this one request was not selected by the
// key, and may have further pages.
func classifyListed(status int, raw []byte, asked reply, missing string) checkout.GatewayResult {
	var list struct {
		Data       *[]reply `json:"data"`
		NextCursor string   `json:"next_cursor"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return unknown(fmt.Errorf("list at simulator: malformed reply with status %d: %w", status, err))
	}
	if !isSuccess(status) || list.Data == nil {
		return unknown(fmt.Errorf("list at simulator: no list in the reply with status %d", status))
	}
	entries := *list.Data
	if len(entries) > 1 || list.NextCursor != "" {
		return unknown(fmt.Errorf("list at simulator: %d entries and the next cursor %q for one key", len(entries), list.NextCursor))
	}
	if len(entries) == 0 {
		return absent(missing)
	}
	entry := entries[0]
	switch echoed := entry.echoes(asked); {
	case echoed && entry.Status == "succeeded":
		return checkout.GatewayResult{Outcome: checkout.OutcomeApproved, ProviderID: entry.ID}
	case echoed && entry.Status == "declined" && entry.DeclineCode != "":
		return declined(entry.DeclineCode)
	}
	return unknown(fmt.Errorf("list at simulator: %w", entry.surprise(status)))
}

// parse takes one complete JSON object, without duplicate members.
func parse(status int, raw []byte) (reply, error) {
	var answer reply
	if err := json.Unmarshal(raw, &answer); err != nil {
		return reply{}, fmt.Errorf("malformed reply with status %d: %w", status, err)
	}
	return answer, nil
}

// echoes reports whether the answer names an entry of the provider, and is about what was asked and
// not about something else.
func (a reply) echoes(asked reply) bool {
	return a.ID != "" && a.IdempotencyKey == asked.IdempotencyKey && a.Amount == asked.Amount &&
		a.Currency == asked.Currency && a.Reference == asked.Reference && a.Charge == asked.Charge
}

func (a reply) surprise(status int) error {
	return fmt.Errorf("unexpected reply: http status %d, id %q, status %q, decline code %q, error code %q, amount %d %s, key %q",
		status, a.ID, a.Status, a.DeclineCode, a.Error.Code, a.Amount, a.Currency, a.IdempotencyKey)
}

func isSuccess(status int) bool { return status >= 200 && status < 300 }

func declined(code string) checkout.GatewayResult {
	return checkout.GatewayResult{Outcome: checkout.OutcomeDeclined, DeclineCode: code}
}

func absent(code string) checkout.GatewayResult {
	return checkout.GatewayResult{Outcome: checkout.OutcomeAbsent, DeclineCode: code}
}

func unknown(cause error) checkout.GatewayResult {
	return checkout.GatewayResult{Outcome: checkout.OutcomeUnknown, Cause: cause}
}
