CREATE TABLE payments (
    id           uuid PRIMARY KEY,
    account_id   uuid NOT NULL,
    order_id     uuid NOT NULL,
    customer_id  uuid NOT NULL,
    method       text NOT NULL CONSTRAINT payments_method CHECK (method IN ('card', 'wallet')),
    token        text NOT NULL, -- the provider's token of a card, never a card number; empty for the wallet
    amount       bigint NOT NULL CHECK (amount > 0),
    currency     text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    -- Includes refunds that are still processing, so that two of them can't exceed the payment together.
    refunded     bigint NOT NULL CONSTRAINT payments_refunded CHECK (refunded BETWEEN 0 AND amount),
    status       text NOT NULL CONSTRAINT payments_status CHECK (status IN ('processing', 'succeeded', 'declined')),
    decline_code text NOT NULL,
    provider_id  text NOT NULL,
    attempt      integer NOT NULL CHECK (attempt > 0), -- the fence
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    UNIQUE (account_id, id),
    FOREIGN KEY (account_id, order_id) REFERENCES orders (account_id, id),
    FOREIGN KEY (account_id, customer_id) REFERENCES customers (account_id, id),
    CONSTRAINT payments_wallet_settles_at_once CHECK (method = 'card' OR (status = 'succeeded' AND token = '')),
    CONSTRAINT payments_refunded_only_if_paid CHECK (status = 'succeeded' OR refunded = 0)
);
-- An order is paid at most once, and by one payment at a time.
CREATE UNIQUE INDEX payments_live ON payments (order_id) WHERE status IN ('processing', 'succeeded');
CREATE INDEX payments_order ON payments (order_id);
-- For the reconciler, which asks the provider about payments that are still processing.
CREATE INDEX payments_processing ON payments (updated_at) WHERE status = 'processing';

CREATE TABLE refunds (
    id           uuid PRIMARY KEY,
    account_id   uuid NOT NULL,
    payment_id   uuid NOT NULL,
    order_id     uuid NOT NULL,
    amount       bigint NOT NULL CHECK (amount > 0),
    currency     text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    status       text NOT NULL CONSTRAINT refunds_status CHECK (status IN ('processing', 'succeeded', 'declined')),
    decline_code text NOT NULL,
    provider_id  text NOT NULL,
    charge_id    text NOT NULL, -- the provider's charge that is refunded; empty for the wallet
    attempt      integer NOT NULL CHECK (attempt > 0), -- the fence
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    FOREIGN KEY (account_id, payment_id) REFERENCES payments (account_id, id),
    FOREIGN KEY (account_id, order_id) REFERENCES orders (account_id, id)
);
CREATE INDEX refunds_payment ON refunds (payment_id);
CREATE INDEX refunds_processing ON refunds (updated_at) WHERE status = 'processing';
