package checkout

// Changes is what follows from a decision. A [Store] writes all of it in the transaction that has
// loaded what was decided on. What is nil or empty is not changed. The IDs of ledger transactions
// and events are the store's to make.
type Changes struct {
	CreatedCustomer *Customer
	ChangedCustomer *Customer
	CreatedWallet   *Wallet
	ChangedWallet   *Wallet
	CreatedTopUp    *TopUp

	CreatedProduct *Product
	ChangedProduct *Product

	CreatedOrder  *Order
	ChangedOrder  *Order
	TakenStock    []OrderItem // at these prices; what is no longer for sale like this must not be written
	ReturnedStock []OrderItem

	CreatedPayment  *Payment
	SettledPayment  *Payment
	RefundedPayment *Payment // another amount of it is refunded, or being refunded
	CreatedRefund   *Refund
	SettledRefund   *Refund

	Ledger []LedgerTransaction
	Events []Event
}
