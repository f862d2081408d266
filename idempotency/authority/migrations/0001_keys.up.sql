-- The authority on idempotency keys: a row is written by the transaction whose effect it stands for. All times
-- are on this database's clock, but attempted_at.
CREATE TABLE IF NOT EXISTS idempotency_keys (
    scope            text COLLATE "C" NOT NULL, -- whose key it is
    key              text COLLATE "C" NOT NULL CHECK (char_length(key) BETWEEN 1 AND 255),
    fingerprint      bytea NOT NULL CHECK (octet_length(fingerprint) = 32),
    operation        text NOT NULL,
    -- in_progress: begun at a provider, and not settled. refused: the key is free, but only for later attempts.
    -- expired: a tombstone. That NULL is refused makes the commit fail if the key is taken.
    status           text NOT NULL CONSTRAINT idempotency_keys_status
        CHECK (status IN ('in_progress', 'completed', 'failed', 'refused', 'expired')),
    resource_id      text, -- of what was begun at a provider
    resource         text, -- path of what the key led to
    response_status  integer CHECK (response_status BETWEEN 200 AND 499),
    response_headers jsonb,
    response_body    bytea,
    trace_parent     text, -- names the request that wrote the row
    attempted_at     timestamptz NOT NULL, -- when the client attempt began, by the clock of a proxy or a replica
    created_at       timestamptz NOT NULL DEFAULT now(),
    completed_at     timestamptz,
    expires_at       timestamptz NOT NULL,
    tombstone_until  timestamptz, -- NULL: the row is deleted when the answer expires
    attempt          integer NOT NULL DEFAULT 1, -- the fence: only the newest attempt settles
    taken_at         timestamptz NOT NULL DEFAULT now(), -- when the newest attempt was taken
    due_at           timestamptz, -- when the next one is due. NULL: one may be under way. infinity: held
    PRIMARY KEY (scope, key),
    CONSTRAINT idempotency_keys_finished_has_response CHECK (CASE
        WHEN status IN ('in_progress', 'refused')
            THEN num_nonnulls(response_status, response_headers, response_body, completed_at) = 0
        WHEN status = 'expired'
            THEN num_nonnulls(response_status, completed_at) = 2 AND num_nonnulls(response_headers, response_body) = 0
        ELSE num_nulls(response_status, response_headers, response_body, completed_at) = 0 END)
);
-- For purging.
CREATE INDEX IF NOT EXISTS idempotency_keys_expiry ON idempotency_keys (expires_at) WHERE status <> 'in_progress';
-- From what was begun at a provider to its key, and for what is due: few rows are in progress.
CREATE UNIQUE INDEX IF NOT EXISTS idempotency_keys_begun ON idempotency_keys (resource_id)
    WHERE status = 'in_progress' AND resource_id IS NOT NULL;
