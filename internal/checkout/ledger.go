package checkout

import "github.com/google/uuid"

// LedgerTransaction is one movement of money in double entry: its entries sum to zero.
type LedgerTransaction struct {
	Kind    string    // such as "card_payment"
	Subject uuid.UUID // the payment, refund or top-up that caused it
	Entries []LedgerEntry
}

// LedgerEntry changes the balance of one ledger account. A positive amount is a debit and a
// negative one a credit.
type LedgerEntry struct {
	Account string // such as "sales", "provider" or "wallet:<customer>"
	Amount  Money
}

// The ledger's own accounts. A customer's wallet has one of its own.
const (
	ledgerSales    = "sales"    // what the shop has earned
	ledgerProvider = "provider" // what the card provider owes the shop
	ledgerFunding  = "funding"  // where top-ups come from
)

// WalletLedger is the ledger account of a customer's wallet.
func WalletLedger(customer uuid.UUID) string { return "wallet:" + customer.String() }

func move(kind string, subject uuid.UUID, debit, credit string, amount Money) []LedgerTransaction {
	return []LedgerTransaction{{Kind: kind, Subject: subject, Entries: []LedgerEntry{
		{Account: debit, Amount: amount}, {Account: credit, Amount: amount.Negated()}}}}
}

// ledger is the movement of a succeeded payment.
func (p Payment) ledger() []LedgerTransaction {
	if p.Method == MethodWallet {
		return move("wallet_payment", p.ID, WalletLedger(p.CustomerID), ledgerSales, p.Amount)
	}
	return move("card_payment", p.ID, ledgerProvider, ledgerSales, p.Amount)
}

// ledger is the movement of a succeeded refund of this payment.
func (r Refund) ledger(payment Payment) []LedgerTransaction {
	if payment.Method == MethodWallet {
		return move("wallet_refund", r.ID, ledgerSales, WalletLedger(payment.CustomerID), r.Amount)
	}
	return move("card_refund", r.ID, ledgerSales, ledgerProvider, r.Amount)
}

// ledger is the movement of a top-up.
func (t TopUp) ledger() []LedgerTransaction {
	return move("top_up", t.ID, ledgerFunding, WalletLedger(t.CustomerID), t.Amount)
}
