CREATE TABLE orders (
    id               uuid PRIMARY KEY, -- version 7, so the order of IDs is the order of time
    account_id       uuid NOT NULL,
    customer_id      uuid NOT NULL,
    status           text NOT NULL CONSTRAINT orders_status CHECK (status IN
        ('pending', 'paying', 'paid', 'cancelled', 'expired', 'partially_refunded', 'refunded')),
    total_amount     bigint NOT NULL CHECK (total_amount > 0),
    total_currency   text NOT NULL CHECK (total_currency ~ '^[A-Z]{3}$'),
    shipping_address jsonb,
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    UNIQUE (account_id, id),
    FOREIGN KEY (account_id, customer_id) REFERENCES customers (account_id, id)
);
CREATE INDEX orders_customer ON orders (account_id, customer_id, id);
-- For the expirer, which releases the stock of unpaid orders.
CREATE INDEX orders_unpaid ON orders (expires_at) WHERE status = 'pending';

CREATE TABLE order_items (
    order_id   uuid NOT NULL,
    position   integer NOT NULL CHECK (position >= 0),
    account_id uuid NOT NULL,
    sku        text NOT NULL,
    name       text NOT NULL,
    quantity   integer NOT NULL CHECK (quantity > 0),
    unit_price bigint NOT NULL CHECK (unit_price > 0), -- in the order's currency
    PRIMARY KEY (order_id, position),
    UNIQUE (order_id, sku),
    FOREIGN KEY (account_id, order_id) REFERENCES orders (account_id, id),
    FOREIGN KEY (account_id, sku) REFERENCES products (account_id, sku)
);
