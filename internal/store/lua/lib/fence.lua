-- A bus that moves to another Redis: package move. Both have a field in their plans for it, the
-- mark. While one of them is closed, it takes no publish and no change by a client. The package
-- fence in Go has these words too.

local MOVE = '?!' -- no topic has such a name: see tail_field
local MOVING = { 0, 'moving' }
local FOREVER = 253402300799999 -- bus.Forever (ms)

-- Whether the field says that the bus is closed.
local function is_closed(mark) return mark and string.find(mark, 'closed', 1, true) == 1 end

-- What a change by a client returns while the bus is closed; else nil.
local function refused_by_move()
  if is_closed(redis.call('HGET', plans_key(), MOVE)) then return MOVING end
  return nil
end

-- The same for package move, whose last argument is the mark that the bus must have: else another
-- run has gone on. It is removed from the arguments. What moves a bus off a Redis that is full must
-- not be refused.
local function refused_to_mover()
  allow_when_full()
  if (redis.call('HGET', plans_key(), MOVE) or '') ~= table.remove(ARGV) then return MOVING end
  return nil
end

-- A subscriber is held, where the bus moves to, until all is delivered that waits for it where the
-- bus was. It is paused meanwhile; until when its client wants it to be (ms, 0 for not at all), the
-- plans say.
local function held_field(token) return MOVE .. token end

local function is_held(token)
  return redis.call('HEXISTS', plans_key(), held_field(token)) == 1
end

-- Notes until when the client of a subscriber wants it to be paused, if it is held. Returns whether
-- it is.
local function pause_held(token, time)
  if not is_held(token) then return false end
  redis.call('HSET', plans_key(), held_field(token), time)
  return true
end

-- Pauses a subscriber that is held, and has subscribed anew.
local function keep_held(token)
  if is_held(token) then redis.call('HSET', delivery_key(token), 'paused_until', FOREVER) end
end
