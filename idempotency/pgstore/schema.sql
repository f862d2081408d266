-- The records of idempotency/pgstore, readable with psql. The primary key lets one of many requests
-- acquire a key. expires_at is on this database's clock.
CREATE TABLE IF NOT EXISTS idempotency_records (
    scope             text COLLATE "C" NOT NULL,
    key               text COLLATE "C" NOT NULL,
    status            text NOT NULL CONSTRAINT idempotency_records_status CHECK (status IN ('InProgress', 'Completed', 'Failed')),
    fingerprint       bytea NOT NULL CONSTRAINT idempotency_records_fingerprint CHECK (octet_length(fingerprint) = 32),
    owner             text NOT NULL, -- the attempt that wrote the row; only it changes the row
    response_status   integer CONSTRAINT idempotency_records_response_status CHECK (response_status BETWEEN 200 AND 499),
    response_headers  json,  -- of the replay
    response_body     bytea, -- of the replay, byte for byte
    body_omitted      boolean NOT NULL DEFAULT false, -- the answer was too large to be kept
    trace_parent      text, -- names the request that wrote the row
    created_at        timestamptz NOT NULL,
    expires_at        timestamptz NOT NULL, -- the lease's end while in progress
    PRIMARY KEY (scope, key),
    CONSTRAINT idempotency_records_finished_has_response CHECK (CASE WHEN status = 'InProgress'
        THEN num_nonnulls(response_status, response_headers, response_body) = 0
        ELSE num_nulls(response_status, response_headers, response_body) = 0 END)
);
-- For sweeping.
CREATE INDEX IF NOT EXISTS idempotency_records_expiry ON idempotency_records (expires_at);
