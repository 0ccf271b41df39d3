-- Adding, waking and removing batches, with all that refers to them.

-- Wakes the batches of a subscriber whose turn it is, since they need not wait any longer.
local function wake_subscriber(token) subscriber_lanes().wake(token, noted_max_in_flight()) end

-- Counts batches, events and bytes that a subscriber has less: texts of numbers below 0, or of -0.
-- Returns whether batches are left.
local function count_batches(token, batches, events, bytes)
  local left = change_gauge(batch_gauge_key(), token, batches) > 0
  if left then
    change_gauge(event_gauge_key(), token, events == '-0' and '0' or events)
    change_gauge(bytes_gauge_key(), token, bytes == '-0' and '0' or bytes)
  else
    redis.pcall('HDEL', event_gauge_key(), token)
    redis.pcall('HDEL', bytes_gauge_key(), token)
  end
  return left
end

-- Removes a batch of a number of events and all that refers to it, except its job. With failed, a
-- delivery of it may have failed; with current, it may take in events. Bytes is the size of its
-- events; if it is missing, the batch's list is read for it and must exist. The first write takes
-- no memory.
local function remove_batch(bid, token, events, max_in_flight, failed, current, bytes)
  bytes = bytes or exact(event_bytes_of(bid))
  local lane, max, current_set = lane_of_subscriber(token), max_in_flight, nil
  local state = state_of(token)
  if state.options_version then
    lane, max, current_set = subscriber_lanes().of(token, bid, max)
  end
  redis.call('DEL', batch_key(bid), traceparents_key(bid), batch_state_key(bid))
  local left = count_batches(token, '-1', '-' .. events, '-' .. bytes)
  redis.call('ZREM', batches_index_key(), bid)
  if current then redis.pcall('SREM', current_set or current_key(token), bid) end
  if failed then redis.pcall('ZREM', failed_key(token), bid) end
  leave_lane(lane, 'main', max, job_of(bid))
  if state.options_version and not left then subscriber_lanes().forget_past(token) end
end

-- Whether a worker has the job of a batch.
local function is_in_flight(bid)
  for _, worker in ipairs(redis.call('SMEMBERS', pending_index_key('main'))) do
    if redis.call('LPOS', pending_key('main', worker), job_of(bid)) then return true end
  end
  return false
end

-- Clears the findings of a batch's attempts, given their number, because its content has changed.
local function note_changed(bid, attempts)
  if attempts == '0' then return end
  redis.call('HINCRBY', batch_state_key(bid), 'revision', 1)
  redis.call('HDEL', batch_state_key(bid), 'refusals', 'suspect', 'webhook_id')
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

-- Adds a batch, whose list exists, with a job that is due now. Its lane is the first unless one is
-- given, but it does not stand in it yet: the worker that takes it puts it there, behind the
-- waiting ones.
local function add_batch(bid, token, created, events, lane)
  if lane and lane > 0 then redis.call('HSET', batch_state_key(bid), 'lane', lane) end
  redis.call('ZADD', batches_index_key(), created, bid)
  change_gauge(batch_gauge_key(), token, '1')
  change_gauge(event_gauge_key(), token, events)
  change_gauge(bytes_gauge_key(), token, exact(event_bytes_of(bid)))
  redis.call('SADD', jobs_index_key('main'), job_of(bid))
  redis.call('LPUSH', instant_key('main'), job_of(bid))
end
