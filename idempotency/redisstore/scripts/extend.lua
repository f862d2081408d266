-- ARGV[2]: the record with its new expiry, ARGV[3]: the lease in milliseconds.
if not held then
  return 'lost'
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 'ok'
