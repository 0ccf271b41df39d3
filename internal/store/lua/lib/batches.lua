-- Batches: their keys, and what several scripts do to them.

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

local function lane_of_subscriber(token) return lane_key('batch', token) end

-- The token that a batch's subscriber has now: the new one, while a token is being changed.
local function holder_of(token)
  return redis.call('HGET', rotations_key(), token) or token
end

-- Changes a gauge or a count, a field of a hash, and removes it when nothing is left. Returns what
-- is left, 0 if that is not known. It is informational: a corrupt one is reset and never fails the
-- script. Redis takes ten times as long for an argument that is a number as for a text: so the hot
-- path has texts where it can.
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

-- Wakes the batches whose turn it is, since what they wait for is over.
local function wake_subscriber(token)
  wake_lane(lane_of_subscriber(token), 'main', noted_max_in_flight())
end

-- The scores of a subscriber's failed batches. From REFUSED on the endpoint refused the batch, the
-- higher the more often, and it is put off; RETRIED is the one of these that stands in the lane.
-- Those below failed because the endpoint did; the oldest is first.
local REFUSED, RETRIED = 0, 1
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

-- Removes a batch of a number of events and all that points to it, except its job. With failed, a
-- delivery of it may have failed; with current, it may take in events. Its first write takes no
-- memory.
local function remove_batch(bid, token, events, max_in_flight, failed, current)
  redis.call('DEL', batch_key(bid), traceparents_key(bid), batch_state_key(bid))
  if change_gauge(batch_gauge_key(), token, '-1') > 0 then
    local change = '-' .. events
    change_gauge(event_gauge_key(), token, change == '-0' and '0' or change)
  else
    redis.pcall('HDEL', event_gauge_key(), token)
  end
  redis.call('ZREM', batches_index_key(), bid)
  if current then redis.pcall('SREM', current_key(token), bid) end
  if failed then redis.pcall('ZREM', failed_key(token), bid) end
  leave_lane(lane_of_subscriber(token), 'main', job_of(bid), max_in_flight)
end

-- Removes the job of a batch that is not in flight. A job deep inside the instant ones stays, since
-- it takes long to find, and goes when it comes up.
local NEAR = 1000 -- how far from the next job to be taken a job is looked for
local function remove_batch_job(bid)
  local job = job_of(bid)
  if redis.call('ZREM', scheduled_key('main'), job) == 0 then
    if not redis.call('LPOS', instant_key('main'), job, 'RANK', -1, 'MAXLEN', NEAR) then return end
    redis.call('LREM', instant_key('main'), -1, job)
  end
  redis.call('SREM', jobs_index_key('main'), job)
end

-- The version of a subscriber's lanes; '' if it has one, as by default.
local function generation_of(token) return redis.call('HGET', plans_key(), token) or '' end

-- Adds a batch, whose list is there, with a job that is due now. It is not in its lane, which is the
-- first unless one is given: whichever worker takes it puts it there, behind what waits.
local function add_batch(bid, token, created, events, lane)
  local generation = generation_of(token)
  if generation ~= '' then
    redis.call('HSET', batch_state_key(bid), 'generation', generation, 'lane', lane or 0)
  end
  redis.call('ZADD', batches_index_key(), created, bid)
  change_gauge(batch_gauge_key(), token, '1')
  change_gauge(event_gauge_key(), token, events)
  redis.call('SADD', jobs_index_key('main'), job_of(bid))
  redis.call('LPUSH', instant_key('main'), job_of(bid))
end

-- How many events a batch has.
local function events_of(bid) return math.max(0, redis.call('LLEN', batch_key(bid)) - HEADER) end
