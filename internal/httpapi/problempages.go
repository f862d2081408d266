package httpapi

import (
	"html/template"
	"net/http"

	"github.com/go-chi/chi/v5"
)

// problemsPath is where the pages are that explain problems. A problem's type is the path of its
// page (RFC 9457, section 3.1.1), which every replica serves.
const problemsPath = "/problems/"

// explanation is what a page says about a problem: when it is answered, and what a client should
// do.
type explanation struct{ When, Then string }

// What a client should do.
const (
	thenCorrect   = "Correct the request and send it again. The same key may be used."
	thenRetry     = "Send the same request again with the same key, after the time in Retry-After. It is executed once."
	thenSameReply = "The answer is kept under the key: the same request gets it again. For another attempt use a new key."
	thenNewKey    = "Use a new key for a new request. A key names one request, with one method, path and body."
)

// explanations has every code that a client can see, also those of nginx in front of the replicas.
var explanations = map[string]explanation{
	// The request as HTTP.
	"malformed_request":          {"The request is not valid HTTP, for example because a header contains a control character.", thenCorrect},
	"headers_too_large":          {"The request line and the headers are too large.", thenCorrect},
	"uri_too_long":               {"The request line is too long.", thenCorrect},
	"not_implemented":            {"The method or the transfer encoding is not supported.", thenCorrect},
	"http_version_not_supported": {"The version of HTTP is not supported.", thenCorrect},
	"expectation_failed":         {"The Expect header asks for something else than 100-continue.", thenCorrect},
	"route_not_found":            {"There is nothing at this path.", thenCorrect},
	"method_not_allowed":         {"The path does not have this method. The Allow header names those that it has.", thenCorrect},
	"unsupported_media_type":     {"The body is not application/json, or it is compressed.", thenCorrect},
	"body_too_large":             {"The body is larger than 64 KiB.", thenCorrect},
	"body_unreadable":            {"The body ended early, or took too long.", thenRetry},
	"body_consumed":              {"The service read the body before it could be compared. This is a mistake in the service.", thenRetry},

	// Who asks.
	"unauthorized":      {"The API key is missing, unknown or revoked.", thenCorrect},
	"invalid_signature": {"The provider event is not signed with the shared secret, was changed, or is older than five minutes.", thenCorrect},
	"rate_limited":      {"The account sends too many requests.", thenRetry},

	// The idempotency key.
	"idempotency_key_missing":       {"The route needs an Idempotency-Key header. Make a new key, such as a UUID, for each thing that should happen, and send the same key with every retry of it.", thenCorrect},
	"idempotency_key_too_long":      {"The idempotency key has more than 255 characters.", thenCorrect},
	"idempotency_key_malformed":     {"The idempotency key is empty, is sent twice, or contains something else than printable ASCII.", thenCorrect},
	"idempotency_key_reused":        {"Another request was answered under the idempotency key. This one was not executed, and never will be.", thenNewKey},
	"idempotency_key_expired":       {"This request was executed before, and its answer is no longer kept. `resource` is the path of what it led to. Nothing was done again.", "Read the resource. For another effect use a new key."},
	"idempotency_key_not_found":     {"Nothing is known of the key in this account, for as long as keys are remembered.", "The request may be sent."},
	"idempotency_in_progress":       {"A request with this key is being processed: the same one, or another one whose answer may still leave the key free.", thenRetry},
	"idempotency_store_unavailable": {"The store of idempotency keys cannot be reached, and the route moves money.", thenRetry},
	"idempotency_response_not_kept": {"The request was executed, and its answer was too large to be kept.", "Read the resource. For another effect use a new key."},
	"newer_attempt_refused":         {"A newer copy of the request was refused, so this older one was not executed.", "Send the request again if it is still wanted."},
	"request_abandoned":             {"The client closed the connection before the request was executed. Nothing was done.", thenRetry},
	"request_too_old":               {"The request waited for too long before it was executed. Nothing was done.", thenRetry},

	// What the request says.
	"invalid_request":     {"The request does not match the API description. `detail` says where.", thenCorrect},
	"invalid_cursor":      {"The cursor is not the next_cursor of an earlier page.", thenCorrect},
	"invalid_text":        {"A text contains a character that cannot be stored.", thenCorrect},
	"invalid_name":        {"The name is blank.", thenCorrect},
	"invalid_email":       {"The e-mail address is not a plain address such as ada@example.com.", thenCorrect},
	"invalid_amount":      {"The amount is less than 1.", thenCorrect},
	"invalid_quantity":    {"The quantity is less than 1.", thenCorrect},
	"no_items":            {"The order has no item.", thenCorrect},
	"duplicate_item":      {"The order lists a SKU twice. Add up its quantities.", thenCorrect},
	"card_number_refused": {"The request contains what looks like a card number: 13 to 19 digits with an issuer's prefix and a valid check digit. Card numbers are never accepted; send the provider's token.", thenCorrect},

	// What the shop says.
	"product_not_found":      {"There is no such product in this account.", thenCorrect},
	"customer_not_found":     {"There is no such customer in this account.", thenCorrect},
	"order_not_found":        {"There is no such order in this account.", thenCorrect},
	"payment_not_found":      {"There is no such payment in this account.", thenCorrect},
	"refund_not_found":       {"There is no such refund in this account.", thenCorrect},
	"unknown_product":        {"The order contains a product that this account does not have. Nothing was done.", thenCorrect},
	"email_taken":            {"Another customer of this account has the e-mail address. Nothing was done.", thenCorrect},
	"order_being_paid":       {"Another payment of the order is being processed. Nothing was done.", thenRetry},
	"payment_processing":     {"The payment is still being processed. Nothing was done.", thenRetry},
	"out_of_stock":           {"There is not enough stock. Nothing was reserved.", thenSameReply},
	"mixed_currencies":       {"The items of the order have different currencies.", thenSameReply},
	"total_too_large":        {"The total of the order is larger than 10^12 minor units.", thenSameReply},
	"balance_too_large":      {"The wallet would hold more than 2^53 - 1 minor units.", thenSameReply},
	"order_already_paid":     {"The order is paid.", thenSameReply},
	"order_cancelled":        {"The order is cancelled.", thenSameReply},
	"order_expired":          {"The order was not paid in time.", thenSameReply},
	"payment_declined":       {"The provider declined the card. Nothing was charged.", thenSameReply},
	"insufficient_funds":     {"The wallet does not cover the order. Nothing was charged.", thenSameReply},
	"payment_not_succeeded":  {"Only a payment that succeeded can be refunded.", thenSameReply},
	"refund_exceeds_payment": {"The refund is more than what is left of the payment.", thenSameReply},
	"refund_declined":        {"The provider declined the refund. Nothing was refunded.", thenSameReply},
	"currency_mismatch":      {"The amount is in another currency than the payment or the wallet.", thenSameReply},

	// What is not available.
	"payment_outcome_unknown": {"The payment provider has not confirmed the outcome yet.", thenRetry},
	"refund_outcome_unknown":  {"The payment provider has not confirmed the outcome yet.", thenRetry},
	"service_unavailable":     {"A server that is needed cannot be reached.", thenRetry},
	"request_timeout":         {"The request took too long.", thenRetry},
	"internal_error":          {"Something failed on our side.", thenRetry},
	"bad_gateway":             {"No replica could answer.", thenRetry},
	"gateway_timeout":         {"No replica answered in time.", thenRetry},
}

var problemPage = template.Must(template.New("problem").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{{.Code}}</title>
<h1>{{.Code}}</h1>
<p>{{.When}}</p>
<h2>What to do</h2>
<p>{{.Then}}</p>
</html>
`))

// explainProblem answers GET /problems/{code}, to anybody.
func (s *Server) explainProblem(w http.ResponseWriter, r *http.Request) {
	code := chi.URLParam(r, "code")
	found, ok := explanations[code]
	if !ok {
		s.fail(w, r, errRouteNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = problemPage.Execute(w, struct { // the client may be gone
		Code string
		explanation
	}{code, found})
}
