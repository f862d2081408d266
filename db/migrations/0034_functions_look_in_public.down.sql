ALTER FUNCTION ledger_check_balance() RESET search_path;
ALTER FUNCTION renew_api_keys_version() RESET search_path;
ALTER FUNCTION refuse_delete() RESET search_path;
ALTER FUNCTION refuse_change() RESET search_path;
ALTER FUNCTION refuse_uncounted_version() RESET search_path;
ALTER FUNCTION refuse_delete_of_begun() RESET search_path;
