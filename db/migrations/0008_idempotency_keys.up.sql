-- The authority on idempotency keys: a row is written by the transaction whose
-- effect it stands for. A row in progress never expires.
CREATE TABLE idempotency_keys (
    account_id       uuid NOT NULL REFERENCES accounts (id),
    key              text NOT NULL CHECK (char_length(key) BETWEEN 1 AND 255),
    fingerprint      bytea NOT NULL CHECK (octet_length(fingerprint) = 32),
    operation        text NOT NULL,
    status           text NOT NULL CONSTRAINT idempotency_keys_status CHECK (status IN ('in_progress', 'completed', 'failed')),
    resource_id      uuid, -- what a retry goes on with while the row is in progress
    response_status  integer CHECK (response_status BETWEEN 200 AND 499),
    response_headers jsonb,
    response_body    bytea,
    created_at       timestamptz NOT NULL DEFAULT now(),
    completed_at     timestamptz,
    expires_at       timestamptz NOT NULL,
    PRIMARY KEY (account_id, key),
    CONSTRAINT idempotency_keys_finished_has_response CHECK (CASE WHEN status = 'in_progress'
        THEN num_nonnulls(response_status, response_headers, response_body, completed_at) = 0
        ELSE num_nulls(response_status, response_headers, response_body, completed_at) = 0 END)
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at) WHERE status <> 'in_progress';
