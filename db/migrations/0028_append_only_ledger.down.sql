DROP TRIGGER append_only ON ledger_entries;
DROP TRIGGER append_only ON ledger_transactions;
DROP FUNCTION refuse_change();
