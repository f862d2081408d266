-- Reads the record under KEYS[1] for the owner ARGV[1].
-- absent: there is none. held: this owner's, in progress. done: this owner's, finished.
local absent, held, done = true, false, false
local stored = redis.call('GET', KEYS[1])
if stored then
  local finish = string.find(stored, '\n', 1, true)
  local readable, metadata = pcall(cjson.decode, string.sub(stored, 1, (finish or 1) - 1))
  if not readable or type(metadata) ~= 'table' or type(metadata.status) ~= 'string' then
    return 'corrupt'
  end
  absent = false
  if metadata.owner == ARGV[1] then
    held = metadata.status == 'InProgress'
    done = not held
  end
end
