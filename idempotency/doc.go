// Package idempotency makes HTTP handlers safe to retry.
package idempotency
