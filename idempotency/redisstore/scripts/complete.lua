-- ARGV[2]: the finished record, ARGV[3]: how long it is kept, in milliseconds, ARGV[4]: the channel
-- for waiters. A user that may not publish still completes.
if done then
  return 'ok'
end
if not held then
  return 'lost'
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.pcall('PUBLISH', ARGV[4], KEYS[1])
return 'ok'
