CREATE TABLE customers (
    id         uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    name       text NOT NULL CHECK (name <> ''),
    email      text NOT NULL CHECK (email <> ''),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    -- Foreign keys refer to this pair, so nothing can refer to another account's customer.
    UNIQUE (account_id, id)
);
CREATE UNIQUE INDEX customers_email ON customers (account_id, lower(email));

CREATE TABLE wallets (
    customer_id uuid PRIMARY KEY,
    account_id  uuid NOT NULL,
    balance     bigint NOT NULL CONSTRAINT wallets_balance_not_negative CHECK (balance >= 0),
    currency    text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    updated_at  timestamptz NOT NULL,
    FOREIGN KEY (account_id, customer_id) REFERENCES customers (account_id, id)
);

CREATE TABLE top_ups (
    id          uuid PRIMARY KEY,
    account_id  uuid NOT NULL,
    customer_id uuid NOT NULL,
    amount      bigint NOT NULL CHECK (amount > 0),
    currency    text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    balance     bigint NOT NULL CHECK (balance >= amount), -- of the wallet, afterwards
    created_at  timestamptz NOT NULL,
    FOREIGN KEY (account_id, customer_id) REFERENCES customers (account_id, id)
);
CREATE INDEX top_ups_customer ON top_ups (customer_id);
