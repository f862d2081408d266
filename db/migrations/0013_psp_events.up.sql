-- The events that the provider has sent us, each once. A row is written by the
-- transaction of what follows from the event, so an event that comes again has
-- no effect.
CREATE TABLE psp_events (
    event_id    text PRIMARY KEY CHECK (char_length(event_id) BETWEEN 1 AND 255),
    type        text NOT NULL,
    subject     text NOT NULL, -- the provider's key of the charge or refund, which names our payment or refund
    verdict     text NOT NULL DEFAULT 'unknown'
                CONSTRAINT psp_events_verdict CHECK (verdict IN ('settled', 'confirmed', 'conflicting', 'unknown')),
    received_at timestamptz NOT NULL DEFAULT now()
);
-- For the purger. Conflicting events are kept for inspection.
CREATE INDEX psp_events_age ON psp_events (received_at) WHERE verdict <> 'conflicting';
