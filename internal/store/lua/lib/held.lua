local FOREVER = 253402300799999 -- bus.Forever (ms)

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
