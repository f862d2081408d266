// Package checkout is the domain: customers, products, orders, payments, refunds, the wallet, the
// ledger and the events that follow from them.
//
// Decisions are pure functions on these types; [Service] puts them in order, a [Store] makes each
// of them one transaction, and a [Gateway] moves money at the payment provider. The package knows
// neither HTTP nor SQL.
//
// Every command may carry a [Claim] on an idempotency key. The store writes the claim and the
// command's [Answer] in the same transaction as the change, so a command under one key has one
// effect and one answer, whatever fails.
package checkout
