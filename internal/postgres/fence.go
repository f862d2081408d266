package postgres

import (
	"errors"

	"github.com/oncepay/oncepay/internal/checkout"
)

// errFenceLost stops a settlement: only the newest attempt may settle.
var errFenceLost = errors.New("the attempt is not the newest one")

// compareFence compares an attempt with the locked row of its operation. It returns errFenceLost if
// a newer attempt has begun, or if the operation is settled already.
func compareFence(status checkout.Status, newest, attempt int32) error {
	if status != checkout.StatusProcessing || newest != attempt {
		return errFenceLost
	}
	return nil
}

func fencePayment(begun checkout.Payment) func(checkout.Payment) error {
	return func(locked checkout.Payment) error {
		return compareFence(locked.Status, locked.Attempt, begun.Attempt)
	}
}

func fenceRefund(begun checkout.Refund) func(checkout.Refund) error {
	return func(locked checkout.Refund) error {
		return compareFence(locked.Status, locked.Attempt, begun.Attempt)
	}
}
