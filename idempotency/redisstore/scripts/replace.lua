-- Replaces the bytes ARGV[2] under KEYS[1], and no others, by the record ARGV[3] for a lease of
-- ARGV[4] milliseconds. A repetition finds them replaced, and then the owner's record.
if redis.call('GET', KEYS[1]) ~= ARGV[2] then
  return 'lost'
end
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
return 'ok'
