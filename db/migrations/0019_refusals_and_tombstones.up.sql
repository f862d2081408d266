-- Two more states of a key.
--
-- refused: the newest attempt was refused and changed nothing. The key is free for later attempts,
-- corrected or not, but no older copy of a request may act after the client has seen the refusal.
--
-- expired: the tombstone of a key that moved money. The reply is gone; what is left says that the key
-- was used, by which request, and what became of it.
ALTER TABLE idempotency_keys
    DROP CONSTRAINT idempotency_keys_status,
    ADD CONSTRAINT idempotency_keys_status CHECK (status IN ('in_progress', 'completed', 'failed', 'refused', 'expired')),
    ADD COLUMN attempted_at    timestamptz NOT NULL DEFAULT now(), -- when the attempt that wrote the row began
    ADD COLUMN resource        text, -- path of what the key led to
    ADD COLUMN tombstone_until timestamptz, -- NULL: the row is deleted when the reply expires
    DROP CONSTRAINT idempotency_keys_finished_has_response,
    ADD CONSTRAINT idempotency_keys_finished_has_response CHECK (CASE
        WHEN status IN ('in_progress', 'refused')
            THEN num_nonnulls(response_status, response_headers, response_body, completed_at) = 0
        WHEN status = 'expired'
            THEN num_nonnulls(response_status, completed_at) = 2 AND num_nonnulls(response_headers, response_body) = 0
        ELSE num_nulls(response_status, response_headers, response_body, completed_at) = 0 END);
