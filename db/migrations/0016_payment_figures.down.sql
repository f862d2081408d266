DROP INDEX payments_created;
