-- ARGV[2]: the finished record, ARGV[3]: how long it is kept, in milliseconds.
if done then
  return 'ok'
end
if not held then
  return 'lost'
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 'ok'
