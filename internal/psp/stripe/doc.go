// Package stripe is the gateway to Stripe.
//
// A charge is one PaymentIntent that is created and confirmed by one request. A refund is one
// Refund of it. Both carry our provider key twice: as Stripe's idempotency key, and in the
// metadata under [KeyMember], where lists and events show it after Stripe has forgotten the
// idempotency key (24 h).
//
// Stripe keeps the first answer under an idempotency key, "regardless of whether it succeeds or
// fails", and "subsequent requests with the same key return the same result, including 500 errors"
// (Stripe API reference, "Idempotent requests"). So a request that was answered with a 5xx cannot
// be asked again under its key: the gateway looks it up instead.
//
// A look-up retrieves the PaymentIntent if its ID is known, and otherwise lists the PaymentIntents
// of the time at which the payment was begun. It never searches: "data is not immediately available
// in search results" (Stripe API reference, "Search"), so that an absence there proves nothing.
package stripe
