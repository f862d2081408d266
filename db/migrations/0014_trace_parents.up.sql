-- Which request an answer was made for, in W3C Trace Context's notation, for replays to be linked to it. NULL: it was not traced.
ALTER TABLE idempotency_keys ADD COLUMN trace_parent text;
ALTER TABLE idempotency_records ADD COLUMN trace_parent text;
