CREATE TABLE products (
    account_id     uuid NOT NULL REFERENCES accounts (id),
    sku            text NOT NULL CHECK (sku <> ''),
    name           text NOT NULL,
    price_amount   bigint NOT NULL CHECK (price_amount > 0),
    price_currency text NOT NULL CHECK (price_currency ~ '^[A-Z]{3}$'),
    -- Units not yet reserved by an order: overselling is impossible, not just unlikely.
    stock          bigint NOT NULL CONSTRAINT products_stock_not_negative CHECK (stock >= 0),
    created_at     timestamptz NOT NULL DEFAULT now(),
    updated_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (account_id, sku)
);
