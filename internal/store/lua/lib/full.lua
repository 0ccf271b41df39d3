-- A full Redis refuses a script at its first write, if that is one that may take memory, and never later.
-- What empties the bus must go on then: it begins with a write that takes none.
local function allow_when_full()
  redis.call('HDEL', workers_key(), '')
end
