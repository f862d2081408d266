-- A confirmation is sent as a mail: of an order, and of its payment. Rows that are there already, and those of replicas of the
-- release before, are never due. See docs/decisions/0027.
ALTER TABLE order_confirmations
    ADD COLUMN event_id   uuid,
    ADD COLUMN type       text NOT NULL DEFAULT 'order.placed',
    ADD COLUMN due_at     timestamptz, -- of the next attempt to send it. NULL: sent, refused, or never to be sent
    ADD COLUMN attempts   integer NOT NULL DEFAULT 0,
    ADD COLUMN sent_at    timestamptz,
    ADD COLUMN last_error text;
CREATE INDEX order_confirmations_due ON order_confirmations (due_at) WHERE due_at IS NOT NULL;

-- The new group begins here: payments of the past get no mail now.
INSERT INTO consumer_cursors (consumer, position) SELECT 'payment-confirmations', position FROM outbox_cursor;
