// Package psp holds the gateways to payment service providers.
//
// Their main task is to report correctly what became of a request. A gateway reports approved
// or declined only when the provider said so in a well-formed answer to exactly this request;
// whatever else happens is unknown, because the money may have moved. And one call is at most one
// attempt on the wire: who retries, and when, is decided above, where the fence is.
package psp
