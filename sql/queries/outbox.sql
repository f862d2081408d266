-- name: InsertEvent :batchexec
INSERT INTO outbox (event_id, account_id, type, aggregate, subject, data)
VALUES (@event_id, @account_id, @type, @aggregate, @subject, @data);
