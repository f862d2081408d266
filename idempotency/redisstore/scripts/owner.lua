-- Reads the record under KEYS[1] for the owner ARGV[1].
-- absent: there is none. held: this owner's, in progress. done: this owner's, finished.
local absent, held, done = true, false, false
local stored = redis.call('GET', KEYS[1])
if stored then
  absent = false
  local finish = string.find(stored, '\n', 1, true)
  -- Nearly always the record is held, and that is seen without decoding it. In progress it is a
  -- single line, and JSON escapes each quotation mark within a text: no text looks like these two
  -- members.
  held = finish == #stored and string.find(stored, '"status":"InProgress"', 1, true) ~= nil
    and string.find(stored, '"owner":"' .. ARGV[1] .. '"', 1, true) ~= nil
  if not held then
    local readable, metadata = pcall(cjson.decode, string.sub(stored, 1, (finish or 1) - 1))
    if not readable or type(metadata) ~= 'table' or type(metadata.status) ~= 'string' then
      return 'corrupt'
    end
    if metadata.owner == ARGV[1] then
      held = metadata.status == 'InProgress'
      done = not held
    end
  end
end
