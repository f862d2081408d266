DROP INDEX inbox_created;
