DROP TABLE top_ups;
DROP TABLE wallets;
DROP TABLE customers;
