-- Money in double entry.
CREATE TABLE ledger_transactions (
    id         uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    kind       text NOT NULL,
    subject    uuid NOT NULL UNIQUE, -- the payment, refund or top-up, which moves its money once
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE ledger_entries (
    transaction_id uuid NOT NULL REFERENCES ledger_transactions (id),
    position       integer NOT NULL,
    ledger_account text NOT NULL, -- such as "sales" or "wallet:<customer>"
    amount         bigint NOT NULL CHECK (amount <> 0), -- positive: debit, negative: credit
    currency       text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    PRIMARY KEY (transaction_id, position)
);
CREATE INDEX ledger_entries_account ON ledger_entries (ledger_account);

CREATE FUNCTION ledger_check_balance() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed uuid[] := CASE TG_OP
        WHEN 'INSERT' THEN ARRAY[NEW.transaction_id]
        WHEN 'DELETE' THEN ARRAY[OLD.transaction_id]
        ELSE ARRAY[OLD.transaction_id, NEW.transaction_id]
    END;
BEGIN
    IF EXISTS (SELECT FROM ledger_entries WHERE transaction_id = ANY (changed)
               GROUP BY transaction_id, currency HAVING sum(amount) <> 0) THEN
        RAISE EXCEPTION 'the entries of ledger transaction % do not sum to zero', changed
            USING ERRCODE = 'check_violation', CONSTRAINT = 'ledger_entries_balanced';
    END IF;
    RETURN NULL;
END
$$;

-- Deferred: a transaction balances when it commits, not after its first entry.
CREATE CONSTRAINT TRIGGER ledger_entries_balanced
    AFTER INSERT OR UPDATE OR DELETE ON ledger_entries
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION ledger_check_balance();
