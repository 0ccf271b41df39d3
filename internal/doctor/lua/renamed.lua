-- Moves what an earlier version of the bus had under another name.
--
-- ARGV     1 namespace, 2 '1' to fix it, 3 what: 'traceparents' of a batch, the 'lane' or the
--          'fields' of a subscriber, 4 the batch or the token
-- Returns  {} or {what}; of a lane it moves a part, which is first
local what, name = ARGV[3], ARGV[4]
local PART = 500

local function move_traceparents(old)
  if redis.call('EXISTS', old) == 0 then return {} end
  if fix and redis.call('RENAMENX', old, traceparents_key(name)) == 0 then
    redis.call('DEL', old)
  end
  return { what }
end

local function move_lane(old)
  if redis.call('EXISTS', old) == 0 then return {} end
  if not fix then return { what } end
  local part = redis.call('ZRANGE', old, 0, PART - 1, 'WITHSCORES')
  for i = 1, #part, 2 do
    local job = job_of(part[i])
    if job ~= '' then redis.call('ZADD', lane_of_subscriber(name), 'NX', part[i + 1], job) end
    redis.call('ZREM', old, part[i])
  end
  return { what }
end

local function move_fields(old)
  local sent, throttled_until, abreast =
    unpack(redis.call('HMGET', old, 'events_sent', 'throttled_until', 'abreast'))
  if not (sent or throttled_until or abreast) then return {} end
  if not fix then return { what } end
  if sent and redis.call('HSETNX', delivery_key(name), 'events_sent', sent) == 0 then
    redis.call('HINCRBY', delivery_key(name), 'events_sent', sent)
  end
  if throttled_until then
    redis.call('HSETNX', delivery_key(name), 'throttled_until', throttled_until)
  end
  redis.call('HDEL', old, 'events_sent', 'throttled_until', 'abreast')
  return { what }
end

if what == 'traceparents' then return move_traceparents(ns .. 'batches:origins:' .. name) end
if what == 'lane' then return move_lane(ns .. 'batches:line:' .. name) end
return move_fields(subscriber_key(name))
