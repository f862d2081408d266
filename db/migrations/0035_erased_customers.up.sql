-- A customer whose personal data was erased. The row stays, because orders, payments and the wallet name it.
ALTER TABLE customers ADD COLUMN erased_at timestamptz;
