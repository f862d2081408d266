-- Who may use the service. Everything else belongs to an account.
CREATE TABLE accounts (
    id         uuid PRIMARY KEY,
    name       text NOT NULL CHECK (name <> ''),
    created_at timestamptz NOT NULL DEFAULT now()
);

-- Only the SHA-256 of an API key is stored, so a copy of this table opens nothing.
CREATE TABLE api_keys (
    hash       bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
    account_id uuid NOT NULL REFERENCES accounts (id),
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz
);
CREATE INDEX api_keys_account ON api_keys (account_id);
