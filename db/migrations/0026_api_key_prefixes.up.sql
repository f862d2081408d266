-- People name an API key by its prefix, so a prefix names one. Keys from before have none.
CREATE UNIQUE INDEX api_keys_prefix ON api_keys (prefix);
