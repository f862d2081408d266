-- name: InsertLedgerTransaction :batchexec
INSERT INTO ledger_transactions (id, account_id, kind, subject) VALUES (@id, @account_id, @kind, @subject);

-- name: InsertLedgerEntry :batchexec
INSERT INTO ledger_entries (transaction_id, position, ledger_account, amount, currency)
VALUES (@transaction_id, @position, @ledger_account, @amount, @currency);
