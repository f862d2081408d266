DELETE FROM consumer_cursors WHERE consumer = 'payment-confirmations'; -- or its cursor would keep the outbox for ever
DELETE FROM inbox WHERE consumer = 'payment-confirmations';
DELETE FROM dead_letters WHERE consumer = 'payment-confirmations';
DELETE FROM order_confirmations WHERE type <> 'order.placed';
DROP INDEX order_confirmations_due;
ALTER TABLE order_confirmations
    DROP COLUMN event_id, DROP COLUMN type, DROP COLUMN due_at, DROP COLUMN attempts, DROP COLUMN sent_at, DROP COLUMN last_error;
