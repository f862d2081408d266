-- ARGV[2]: the channel for waiters. A user that may not publish still releases.
if absent then
  return 'ok'
end
if not held then
  return 'lost'
end
redis.call('DEL', KEYS[1])
redis.pcall('PUBLISH', ARGV[2], KEYS[1])
return 'ok'
