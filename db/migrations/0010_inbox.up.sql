-- What each consumer of events has done. A row is written by the transaction of
-- the effect, so an event that comes again has none.
CREATE TABLE inbox (
    consumer   text NOT NULL CHECK (consumer <> ''),
    event_id   uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (consumer, event_id)
);

-- The effects of two sample consumers. Like e-mails and parcels, they know no
-- uniqueness and no foreign keys: in a company they belong to other services.
CREATE TABLE order_confirmations (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id uuid NOT NULL,
    order_id   uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX order_confirmations_order ON order_confirmations (order_id);

CREATE TABLE warehouse_notices (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id uuid NOT NULL,
    order_id   uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX warehouse_notices_order ON warehouse_notices (order_id);
