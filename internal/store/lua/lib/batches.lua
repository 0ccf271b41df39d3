-- What several scripts do to batches and their jobs.

-- A batch's list begins with its subscriber, its creation time and its attempts.
local HEADER = 3

-- The job that delivers a batch is MessagePack ["batch", [bid]]: an array of two,
-- a 5-byte string, an array of one, and a string whose length is in its first byte.
local JOB_HEAD = '\146\165batch\145'

local function job_of(bid)
  return JOB_HEAD .. string.char(160 + #bid) .. bid
end

-- The batch that a job of a queue delivers; nil for any other job. One byte can say a length of up to 31.
local function batch_of(queue, job)
  local bid = string.sub(job, #JOB_HEAD + 2)
  if queue == 'main' and #bid >= 1 and #bid <= 31 and job == job_of(bid) then return bid end
  return nil
end

-- Lowers a gauge, and removes it when nothing is left.
local function lower(gauge, token, by)
  if redis.call('HINCRBY', gauge, token, -by) <= 0 then
    redis.call('HDEL', gauge, token)
  end
end

-- Makes a scheduled job instant: RPUSH makes it the next taken, LPUSH the last. Any other job stays as it is.
local function make_instant(job, push)
  if redis.call('ZSCORE', scheduled_key('main'), job) then
    redis.call(push, instant_key('main'), job)
    redis.call('ZREM', scheduled_key('main'), job)
  end
end

-- Calls the first batches of a subscriber's line, as many as may be delivered at
-- once: a job that was told to wait for its turn becomes instant, and is the next taken.
local function call_line(token, abreast)
  local first = redis.call('ZRANGE', line_key(token), 0, abreast - 1)
  for i = #first, 1, -1 do
    make_instant(job_of(first[i]), 'RPUSH')
  end
end

local function leave_line(token, bid, abreast)
  if redis.call('ZREM', line_key(token), bid) == 1 then
    call_line(token, abreast)
  end
end

-- Removes a batch and all that points to it, except its job.
local function remove_batch(bid, token, abreast)
  local events = redis.call('LLEN', batch_key(bid)) - HEADER
  lower(event_gauge_key(), token, events)
  lower(batch_gauge_key(), token, 1)
  redis.call('DEL', batch_key(bid))
  redis.call('ZREM', batches_index_key(), bid)
  redis.call('SREM', current_key(token), bid)
  leave_line(token, bid, abreast)
end

-- Adds to a subscriber's health, within 0 and 100. A subscriber that is gone stays so.
local function heal(token, points)
  if redis.call('EXISTS', subscriber_key(token)) == 1 then
    local health = tonumber(redis.call('HGET', subscriber_key(token), 'health_points')) or 100
    redis.call('HSET', subscriber_key(token), 'health_points',
      math.max(0, math.min(100, health + points)))
  end
end
