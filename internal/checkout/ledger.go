package checkout

import "github.com/google/uuid"

// LedgerTransaction is one movement of money in double entry: its entries sum to zero.
type LedgerTransaction struct {
	ID      uuid.UUID
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

func move(id uuid.UUID, kind string, subject uuid.UUID, debit, credit string, amount Money) LedgerTransaction {
	return LedgerTransaction{ID: id, Kind: kind, Subject: subject, Entries: []LedgerEntry{
		{Account: debit, Amount: amount}, {Account: credit, Amount: amount.Negated()}}}
}

// Ledger is the movement of a succeeded payment.
func (p Payment) Ledger(id uuid.UUID) LedgerTransaction {
	if p.Method == MethodWallet {
		return move(id, "wallet_payment", p.ID, WalletLedger(p.CustomerID), ledgerSales, p.Amount)
	}
	return move(id, "card_payment", p.ID, ledgerProvider, ledgerSales, p.Amount)
}

// Ledger is the movement of a succeeded refund of this payment.
func (r Refund) Ledger(id uuid.UUID, payment Payment) LedgerTransaction {
	if payment.Method == MethodWallet {
		return move(id, "wallet_refund", r.ID, ledgerSales, WalletLedger(payment.CustomerID), r.Amount)
	}
	return move(id, "card_refund", r.ID, ledgerSales, ledgerProvider, r.Amount)
}

// Ledger is the movement of a top-up.
func (t TopUp) Ledger(id uuid.UUID) LedgerTransaction {
	return move(id, "top_up", t.ID, ledgerFunding, WalletLedger(t.CustomerID), t.Amount)
}
