-- The keys of batches, and functions that several scripts use on them.

-- A batch's list begins with its subscriber's token, its creation time (ms) and its attempts.
local HEADER = 3
local LAST_OF_HEADER = '2' -- HEADER - 1

local function job_of(bid) return #bid <= MAX_STRING and pack_job('batch', bid) or '' end

-- The batch that a job of a queue delivers; nil for any other job.
local function batch_of(queue, job)
  local name, bid = unpack_job(job)
  if queue == 'main' and name == 'batch' then return bid end
  return nil
end

-- Batches as a kind of the queue's entries; deliveries.lua has the rest of it.
local BATCH = { queue = 'main' }
KINDS.batch = BATCH
function BATCH.exists(bid) return redis.call('EXISTS', batch_key(bid)) == 1 end

-- The key of a lane of a subscriber, from 0 on: the first, which most have alone, if none is given.
local function lane_of_subscriber(token, lane)
  return lane_key('batch', (lane or 0) == 0 and token or token .. '/' .. lane)
end

-- The token that a batch's subscriber has now: the new one, while a token is being changed.
local function holder_of(token)
  return redis.call('HGET', rotations_key(), token) or token
end

-- Changes a gauge or a count, a field of a hash, and removes it at 0. Returns the new value, 0 if
-- that is not known. It is informational: a corrupt one is reset and never fails the script. Redis
-- takes ten times as long for an argument that is a number as for a text: so the hot path has texts
-- where it can.
local function change_gauge(gauge, field, by)
  local left = redis.pcall('HINCRBY', gauge, field, by)
  if type(left) ~= 'number' then
    redis.pcall('HDEL', gauge, field)
    if tonumber(by) > 0 then redis.pcall('HINCRBY', gauge, field, by) end
    return 0
  elseif left <= 0 then
    redis.call('HDEL', gauge, field)
  end
  return left
end

-- How many batches of one subscriber may be delivered at once, as workers have noted.
local function noted_max_in_flight()
  return math.max(1, tonumber(redis.pcall('HGET', max_in_flight_key(), 'batch')) or 1)
end

-- The scores of a subscriber's failed batches. From REFUSED on, the endpoint refused the batch, the
-- higher the more often, and it is put off. RETRIED is the one refused batch that stands in a lane
-- to be retried. KEPT are batches that stand in a lane because the order is or was strict. Batches
-- with lower scores failed because the endpoint did; the oldest is first.
local REFUSED, RETRIED, KEPT = 0, 1, 2
local function refused_times(attempts)
  return string.format('%.3f', REFUSED + math.min(attempts, 999) / 1000)
end
local function failed_with_endpoint(created)
  return string.format('%.0f', (tonumber(created) or 0) - 1e15)
end

-- Whether the endpoint refused a batch that has failed so often.
local function was_refused(token, bid, failures)
  return failures > 0 and (tonumber(redis.pcall('ZSCORE', failed_key(token), bid)) or -1) >= REFUSED
end

-- Whether a batch that an attempt leaves keeps its turn in its lane.
local function keeps_turn(entry) return entry.result[12] == '1' end

-- How many events a batch has.
local function events_of(bid) return math.max(0, redis.call('LLEN', batch_key(bid)) - HEADER) end

-- How many bytes texts have together, from the index first to last, or to the end.
local function bytes_of(texts, first, last)
  local bytes = 0
  for i = first, last or #texts do bytes = bytes + #texts[i] end
  return bytes
end

-- How many bytes the packed events of a batch have, or the first of them up to an index from 0.
-- Only what seldom happens reads a batch for this.
local function event_bytes_of(bid, last)
  local to = last and HEADER + last or -1
  return bytes_of(redis.pcall('LRANGE', batch_key(bid), HEADER, to), 1) -- 0 for another type
end

-- A subscriber's standing: a delivery has failed since the last that succeeded; none has succeeded
-- yet, or it has subscribed again since one failed (throttled_until is 0); the last succeeded.
local FAILING, UNTRIED, PROVEN = 0, 1, 2

-- The state of the deliveries to subscribers that a script has read, by token.
local STATES = {}

-- The state of deliveries to a subscriber; empty if there is none. It is the bus's own: a key that
-- is not of its type is removed.
local function state_of(token)
  if not STATES[token] then
    local found = redis.pcall('HMGET', delivery_key(token),
      'name', 'events_sent', 'throttled_until', 'plan', 'paused_until', 'paced_until', 'ahead',
      'former')
    if found.err then
      redis.call('DEL', delivery_key(token))
      found = {}
    end
    local state = {
      name = found[1], throttled_until = found[3] or nil, refused_since = 0,
      standing = found[2] and PROVEN or UNTRIED, options_version = found[4] or nil,
      blocked_until = tonumber(found[3]) or 0, paced_until = tonumber(found[6]),
      ahead = tonumber(found[7]), former = found[8] or nil,
    }
    if found[5] or found[6] then
      state.blocked_until = math.max(
        state.blocked_until, tonumber(found[5]) or 0, tonumber(found[6]) or 0)
    end
    if state.throttled_until then -- only then are there refusals
      local refused = redis.call('HMGET', delivery_key(token), 'refusals', 'refused_since')
      state.refusals, state.refused_since = tonumber(refused[1]), tonumber(refused[2]) or 0
      state.standing = state.throttled_until == '0' and UNTRIED or FAILING
    end
    STATES[token] = state
  end
  return STATES[token]
end

-- Whether a batch is of an earlier subscription, given the state: in flight as its subscriber
-- subscribed anew. Its result is not noted, and it is not delivered again.
local function is_former(state, bid)
  return state.former and string.find(state.former, bid, 1, true) ~= nil
end
