DELETE FROM idempotency_keys WHERE status IN ('refused', 'expired');
ALTER TABLE idempotency_keys
    DROP CONSTRAINT idempotency_keys_status,
    ADD CONSTRAINT idempotency_keys_status CHECK (status IN ('in_progress', 'completed', 'failed')),
    DROP CONSTRAINT idempotency_keys_finished_has_response,
    DROP COLUMN attempted_at,
    DROP COLUMN resource,
    DROP COLUMN tombstone_until,
    ADD CONSTRAINT idempotency_keys_finished_has_response CHECK (CASE WHEN status = 'in_progress'
        THEN num_nonnulls(response_status, response_headers, response_body, completed_at) = 0
        ELSE num_nulls(response_status, response_headers, response_body, completed_at) = 0 END);
