DROP TABLE warehouse_notices;
DROP TABLE order_confirmations;
DROP TABLE inbox;
