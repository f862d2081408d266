package postgres

import (
	"context"
	"errors"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// write queues changes. Their rows are locked, or new, or products. Nothing but the events comes
// after the products, so a popular one is locked only briefly. Nor does a transaction wait for that
// lock after it has written to the outbox; the relay would have to wait for it.
func (tx *transaction) write(ctx context.Context, c checkout.Changes) (err error) {
	writeRow(ctx, tx, c.CreatedCustomer, (*transaction).insertCustomer)
	writeRow(ctx, tx, c.ChangedCustomer, (*transaction).updateCustomer)
	writeRow(ctx, tx, c.CreatedWallet, (*transaction).insertWallet)
	writeRow(ctx, tx, c.CreatedTopUp, (*transaction).insertTopUp)
	writeRow(ctx, tx, c.CreatedOrder, (*transaction).insertOrder)
	writeRow(ctx, tx, c.CreatedPayment, (*transaction).insertPayment)
	writeRow(ctx, tx, c.SettledPayment, (*transaction).settlePayment)
	writeRow(ctx, tx, c.CreatedRefund, (*transaction).insertRefund)
	writeRow(ctx, tx, c.SettledRefund, (*transaction).settleRefund)
	writeRow(ctx, tx, c.RefundedPayment, (*transaction).setRefunded)
	writeRow(ctx, tx, c.ChangedWallet, (*transaction).setBalance)
	for _, movement := range c.Ledger {
		tx.post(ctx, movement)
	}
	if c.ChangedOrder != nil {
		err = tx.updateOrder(ctx, *c.ChangedOrder)
	}
	writeRow(ctx, tx, c.CreatedProduct, (*transaction).insertProduct)
	writeRow(ctx, tx, c.ChangedProduct, (*transaction).updateProduct)
	if len(c.TakenStock) > 0 {
		tx.takeStock(ctx, c.TakenStock)
	}
	if len(c.ReturnedStock) > 0 {
		tx.returnStock(ctx, c.ReturnedStock)
	}
	for _, event := range c.Events {
		err = errors.Join(err, tx.publish(ctx, event))
	}
	return err
}

// writeRow queues the write of a row, unless there is none.
func writeRow[T any](ctx context.Context, tx *transaction, row *T, write func(*transaction, context.Context, T)) {
	if row != nil {
		write(tx, ctx, *row)
	}
}

// post queues the ledger's side of a movement of money.
func (tx *transaction) post(ctx context.Context, movement checkout.LedgerTransaction) {
	id := newID()
	tx.InsertLedgerTransaction(ctx, []dbsqlc.InsertLedgerTransactionParams{{
		ID: id, AccountID: tx.account, Kind: movement.Kind, Subject: movement.Subject}})
	entries := make([]dbsqlc.InsertLedgerEntryParams, len(movement.Entries))
	for i, entry := range movement.Entries {
		entries[i] = dbsqlc.InsertLedgerEntryParams{TransactionID: id, Position: int32(i),
			LedgerAccount: entry.Account, Amount: entry.Amount.Amount, Currency: entry.Amount.Currency}
	}
	tx.InsertLedgerEntry(ctx, entries)
}
