DROP TRIGGER begun_stays ON idempotency_keys;
DROP FUNCTION refuse_delete_of_begun();
