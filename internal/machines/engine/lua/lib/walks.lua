-- Walks over labels: see walks.go.

-- Adds a walk, to be run now; if it is in the queue already, in any state, returns its entry.
local function add_walk(machine, name)
  local entry = pack_pair('walk', machine, name)
  if redis.call('SADD', jobs_index_key(QUEUE), entry) == 0 then return entry end
  redis.call('LPUSH', instant_key(QUEUE), entry)
  return nil
end
