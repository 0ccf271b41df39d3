-- A bus that moves to another Redis: package move. Both have a field in their plans for it, the
-- mark. While one of them is closed, it takes no publish and no change by a client. The Go half of
-- this package has these words too. The queue's library comes before.

local function plans_key() return ns .. 'plans' end

local MOVE = '?!' -- no topic has such a name: see tail_field in the store's library

-- What a change by a client returns while the bus is closed; else nil. The script of a publish has
-- read the mark already, and decides itself.
local function refused_by_move()
  local mark = redis.call('HGET', plans_key(), MOVE)
  if mark and string.find(mark, 'closed', 1, true) == 1 then return { 0, 'moving' } end
  return nil
end

-- The same for package move, whose last argument is the mark that the bus must have: else another
-- run has gone on. It is removed from the arguments. What moves a bus off a Redis that is full must
-- not be refused.
local function refused_to_mover()
  allow_when_full()
  local mark = redis.call('HGET', plans_key(), MOVE) or ''
  if mark ~= table.remove(ARGV) then return { 0, 'moving' } end
  return nil
end
