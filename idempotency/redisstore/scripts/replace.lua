-- Replaces the bytes ARGV[2] under KEYS[1], and no others, by the record ARGV[3] of the owner ARGV[1].
-- ARGV[4]: its lease in milliseconds.
local stored = redis.call('GET', KEYS[1])
if stored == ARGV[3] then
  return 'ok' -- replaced before, and the reply was lost
end
if stored ~= ARGV[2] then
  return 'lost'
end
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
return 'ok'
