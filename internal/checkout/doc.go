// Package checkout is the domain: customers, products, orders, payments, refunds, the wallet, the
// ledger and the events that follow from them.
//
// Each operation has a decision: a pure function of what was loaded, which returns the value to
// answer with and all [Changes] that follow. [Service] puts the operations in order, a [Store]
// makes each decision one transaction, and a [Gateway] moves money at the payment provider. The
// package knows neither HTTP nor SQL.
//
// Every command may carry a [Claim] on an idempotency key. The store writes the claim and the
// command's [Answer] in the same transaction as the change, so a command under one key has one
// effect and one answer, whatever fails.
package checkout
