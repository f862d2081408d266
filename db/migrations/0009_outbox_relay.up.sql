-- What relays need to publish events side by side. A relay claims an event for
-- a while, publishes it outside of any transaction and then marks it.
ALTER TABLE outbox
    ADD COLUMN due_at     timestamptz NOT NULL DEFAULT now(), -- when the claim ends, or the pause after a refusal
    ADD COLUMN claim      uuid, -- the fence: only this claim may say what became of the event
    ADD COLUMN attempts   integer NOT NULL DEFAULT 0 CHECK (attempts >= 0), -- that were refused
    ADD COLUMN last_error text,
    ADD COLUMN dead_at    timestamptz, -- when a relay gave up; the subject's later events wait for this one
    ADD CONSTRAINT outbox_published_is_settled CHECK (published_at IS NULL OR num_nonnulls(claim, dead_at) = 0);

-- For the first unpublished event of a subject, which is the one to publish next.
CREATE INDEX outbox_next ON outbox (subject, id) WHERE published_at IS NULL;

-- Sending again what a broker lost goes by when it was sent, not by when it
-- happened: after an outage the two are far apart.
CREATE INDEX outbox_published ON outbox (published_at) WHERE published_at IS NOT NULL;
DROP INDEX outbox_created;
