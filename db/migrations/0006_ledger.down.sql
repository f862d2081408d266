DROP TABLE ledger_entries;
DROP TABLE ledger_transactions;
DROP FUNCTION ledger_check_balance();
