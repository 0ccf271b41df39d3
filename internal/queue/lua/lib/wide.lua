-- A wide lane allows many entries in flight, and its limit may change at any time. It is a lane
-- (lanes.lua) with two differences. Each entry has a place, a whole number above 0, which it keeps
-- for life: an entry that comes back stands where it stood. And an entry in flight is marked by a
-- score below 0: an entry that comes back stands behind those. So the number in flight is the
-- number of scores below 0, and no step has to read more of the lane than it changes. Of the
-- waiting entries, the first up to the limit are instant, or were put off until a time; an entry
-- that leaves wakes the next.

local IN_FLIGHT = 4503599627370496 -- 2^52; places are below it

-- How many stand before an entry that has its turn, which is when they are less than `max`; false
-- for any other. One that is not in the lane takes its place.
local function has_turn(lane, job, place, max)
  local rank = redis.call('ZRANK', lane, job)
  if not rank then
    redis.call('ZADD', lane, exact(place), job)
    rank = redis.call('ZRANK', lane, job)
  end
  return rank < max and rank
end

-- How much ahead of its time (ms, from 0 to below 1) an entry comes, given how many wait before it:
-- so entries that wait for the same time come in order. A score of today has 4096 steps in a ms.
local function ahead_of(waiting) return 1 - math.min(waiting + 1, 4096) / 4096 end

-- How many entries of a lane are in flight.
local function in_flight_of(lane) return redis.call('ZCOUNT', lane, '-inf', '(0') end

-- Marks an entry that has its turn as one in flight.
local function begin_in_lane(lane, job, place)
  redis.call('ZADD', lane, exact(place - IN_FLIGHT), job)
end

-- Wakes the last of the entries that have their turn, unless that is in flight, or is `but`.
local function wake_last_in_turn(lane, queue, max, but)
  if max < 1 then return end
  local last = redis.call('ZRANGE', lane, max - 1, max - 1, 'WITHSCORES')
  if last[1] and last[1] ~= but and tonumber(last[2]) > 0 then make_instant(queue, last[1]) end
end

-- Takes an entry out of its lane, and wakes the one that now has its turn.
local function leave_wide_lane(lane, queue, job, max)
  if redis.call('ZREM', lane, job) == 1 then wake_last_in_turn(lane, queue, max) end
end

-- Returns an entry that was in flight to its place, until a time (ms). One that waited behind it
-- may stand before it now, and have its turn.
local function return_to_lane(lane, queue, job, place, max, time)
  redis.call('ZADD', lane, exact(place), job)
  wake_last_in_turn(lane, queue, max, job)
  local ahead = ahead_of(redis.call('ZRANK', lane, job) - in_flight_of(lane))
  redis.call('ZADD', scheduled_key(queue), string.format('%.4f', time - ahead), job)
end

-- The waiting entries that have their turn, in order: at most `most` of them, behind a place if one
-- is given.
local function in_turn_of(lane, max, most, behind)
  behind = exact(behind or 0)
  local free = math.min(max - redis.call('ZCOUNT', lane, '-inf', behind), most)
  if free < 1 then return {} end
  return redis.call('ZRANGEBYSCORE', lane, '(' .. behind, '+inf', 'LIMIT', 0, free)
end
