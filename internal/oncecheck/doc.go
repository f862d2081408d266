// Package oncecheck finds out whether an API that has idempotency keys keeps what they promise.
// It gets one request that changes something, sends it in the ways in which retries happen, and
// returns a verdict for each rule with the requests and answers as they were on the wire.
//
// It is a client of any service, and knows nothing of this one. The rules are in the rules…go
// files, each with a page in pages.
package oncecheck
