-- What several scripts do to batches and their jobs.

-- A batch's list begins with its subscriber, its creation time and its attempts.
local HEADER = 3

-- The job that delivers a batch is MessagePack ["batch", [bid]]: an array of two,
-- a 5-byte string, an array of one, and a string whose length is in its first byte.
local JOB_HEAD = '\146\165batch\145'
local LONGEST_UID = 31 -- what one byte can say

-- No job, which is empty, for what cannot be the UID of a batch.
local function job_of(bid)
  if #bid > LONGEST_UID then return '' end
  return JOB_HEAD .. string.char(160 + #bid) .. bid
end

-- The batch that a job of a queue delivers; nil for any other job.
local function batch_of(queue, job)
  local bid = string.sub(job, #JOB_HEAD + 2)
  if queue == 'main' and #bid >= 1 and job == job_of(bid) then return bid end
  return nil
end

-- Whose a batch is that begins with a token: the new token's, while a client's token is being changed.
local function holder_of(token)
  return redis.call('HGET', rotations_key(), token) or token
end

-- Changes a gauge, and removes it when nothing is left. Returns what is left, 0 if that is not known. Gauges are for who looks
-- on: one that is no number, which is not our doing, begins anew, and stops nothing.
local function change_gauge(gauge, token, by)
  local left = redis.pcall('HINCRBY', gauge, token, by)
  if type(left) ~= 'number' then
    redis.pcall('HDEL', gauge, token)
    if by > 0 then redis.pcall('HINCRBY', gauge, token, by) end
    return 0
  elseif left <= 0 then
    redis.call('HDEL', gauge, token)
  end
  return left
end

-- Makes a scheduled job instant: RPUSH makes it the next taken, LPUSH the last. Any other job stays as it is.
local function make_instant(job, push)
  if redis.call('ZREM', scheduled_key('main'), job) == 1 then
    redis.call(push, instant_key('main'), job)
  end
end

-- Appends a batch to its subscriber's line, given the score of the last in it. Returns its own.
local function append_to_line(token, bid, last)
  redis.call('ZADD', line_key(token), last + 1, bid)
  return last + 1
end

-- The score of the last in a subscriber's line, 0 if there is none.
local function last_in_line(token)
  return tonumber(redis.call('ZRANGE', line_key(token), -1, -1, 'WITHSCORES')[2]) or 0
end

-- Whether a batch of a line has its list and its job, with which somebody comes to call the next.
local function has_list_and_job(bid)
  return redis.call('EXISTS', batch_key(bid)) == 1 and redis.call('SISMEMBER', jobs_index_key('main'), job_of(bid)) == 1
end

-- Calls batches of a subscriber's line by their places, the first of which is 0: a job that was told to wait
-- for its turn becomes instant, and is the next taken.
local function call_line(token, from, to)
  local called = redis.call('ZRANGE', line_key(token), from, to)
  for i = #called, 1, -1 do
    make_instant(job_of(called[i]), 'RPUSH')
  end
end

-- Calls those whose turn it is, since what they wait for is over. How many that are, workers have noted.
local function call_first(token)
  call_line(token, 0, (tonumber(redis.call('HGET', subscriber_key(token), 'abreast')) or 1) - 1)
end

-- Takes a batch out of its subscriber's line. That lets one more be delivered, which is called: all that may be now, since
-- somebody with a smaller setting may have taken one out without calling whom it should. So the first never waits in vain.
local function leave_line(token, bid, abreast)
  if redis.pcall('ZREM', line_key(token), bid) == 1 then
    call_line(token, 0, abreast - 1)
  end
end

-- What the entry of a subscriber's failed batch says: from REFUSED on the endpoint refused it, the higher the more often,
-- and it is put off; RETRIED is the one of these that is in the line. The others, which are below, failed
-- because the endpoint did, the oldest first.
local REFUSED, RETRIED = 0, 1
local function refused_times(attempts) return string.format('%.3f', REFUSED + math.min(attempts, 999) / 1000) end
local function failed_with_endpoint(created) return string.format('%.0f', (tonumber(created) or 0) - 1e15) end

-- Whether the endpoint refused a batch that has failed so often.
local function was_refused(token, bid, failures)
  return failures > 0 and (tonumber(redis.pcall('ZSCORE', failed_key(token), bid)) or -1) >= REFUSED
end

-- Has one of a subscriber's refused batches come up before its time, the one refused least often: there is reason to
-- think that the endpoint would take it now. If it does the next comes up, and so on.
local function retry_next(token)
  local bid = redis.pcall('ZRANGEBYSCORE', failed_key(token), REFUSED, '(' .. RETRIED, 'LIMIT', 0, 1)[1]
  if bid then make_instant(job_of(bid), 'LPUSH') end
end

-- For how long (ms) batches were refused, and none succeeded, when they may have been victims of an outage.
local OUTAGE = 10000
local RELEASED_AT_ONCE = 100 -- bounds one call

-- Ends what a subscriber's failures have brought about, since it is taken for well: batches that failed with the endpoint
-- come up at once. If there are too many for one call it is still taken for failing, and the next goes on.
local function end_failure(token, now)
  local since = tonumber(redis.pcall('HGET', delivery_key(token), 'refused_since')) or math.huge
  if since <= now - OUTAGE then retry_next(token) end
  local failed = redis.pcall('ZRANGEBYSCORE', failed_key(token), '-inf', '(' .. REFUSED, 'LIMIT', 0, RELEASED_AT_ONCE)
  for _, bid in ipairs(failed) do
    redis.call('ZREM', failed_key(token), bid)
    make_instant(job_of(bid), 'LPUSH')
  end
  if #failed == RELEASED_AT_ONCE then
    redis.call('HSET', subscriber_key(token), 'throttled_until', 1)
    redis.pcall('HSET', delivery_key(token), 'refusals', 0)
  else
    redis.call('DEL', delivery_key(token))
    redis.call('HDEL', subscriber_key(token), 'throttled_until')
  end
end

-- Removes a batch and all that points to it, except its job. Failed says that a delivery of it may have. Returns how
-- many events it had. Its first write takes no memory.
local function remove_batch(bid, token, abreast, failed)
  local events = math.max(0, redis.call('LLEN', batch_key(bid)) - HEADER)
  redis.call('DEL', batch_key(bid), origins_key(bid))
  change_gauge(event_gauge_key(), token, 0 - events) -- not -events: Redis does not read -0
  change_gauge(batch_gauge_key(), token, -1)
  redis.call('ZREM', batches_index_key(), bid)
  redis.pcall('SREM', current_key(token), bid)
  if failed then redis.pcall('ZREM', failed_key(token), bid) end
  leave_line(token, bid, abreast)
  return events
end

-- Adds to a subscriber's health, given what it was, within 0 and 100.
local function heal(token, health, points)
  local healed = math.max(0, math.min(100, (tonumber(health) or 100) + points))
  if healed ~= tonumber(health) then
    redis.call('HSET', subscriber_key(token), 'health_points', healed)
  end
end
