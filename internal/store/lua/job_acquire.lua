-- Takes the next instant job for a worker and, when it delivers a batch, takes the batch
-- with it: closes it to new events and counts the attempt. A batch whose subscriber is
-- being served, or left alone after a failure, stays as it is and waits; one whose subscriber is gone
-- is dropped.
--
-- ARGV     1 namespace, 2 queue, 3 worker, 4 now (ms), 5 most batches of one subscriber
--          that may be delivered at once, 6 when a job told to wait comes up by itself at
--          the latest (ms), should nobody call it
-- Returns  nil when there is nothing to do; {job}; or {job, subscriber, its name, callback,
--          uuid, health, created (ms), attempts, {packed events}}
-- Keeps    a pending job's worker in `workers` and in the index; at most one pending job a
--          worker; the batches of a subscriber delivered in the order in which they came up
local queue, worker, abreast = ARGV[2], ARGV[3], tonumber(ARGV[5])
local pending = pending_key(queue, worker)
local MOST_PASSED_OVER = 100 -- bounds one call

local function discard(job)
  redis.call('LREM', pending, 1, job)
  redis.call('SREM', jobs_index_key(queue), job)
end

-- Lets a job wait until a time (ms), unless it is called before.
local function put_off(job, deadline)
  redis.call('ZADD', scheduled_key(queue), deadline, job)
  redis.call('LREM', pending, 1, job)
end

-- Whether a batch of the line still has its list and its job; if not, it is struck out.
local function stands(token, bid)
  if redis.call('EXISTS', batch_key(bid)) == 1
    and redis.call('SISMEMBER', jobs_index_key(queue), job_of(bid)) == 1 then
    return true
  end
  redis.call('ZREM', line_key(token), bid)
  return false
end

-- Whether it is a batch's turn. Joins the line, at its end, if it is not in it.
local function in_turn(token, bid)
  local line = line_key(token)
  local last = redis.call('ZRANGE', line, -1, -1, 'WITHSCORES')
  redis.call('ZADD', line, 'NX', (tonumber(last[2]) or 0) + 1, bid)
  local struck = false
  while redis.call('ZRANK', line, bid) >= abreast do
    local all_stand = true
    for _, ahead in ipairs(redis.call('ZRANGE', line, 0, abreast - 1)) do
      if not stands(token, ahead) then all_stand = false end
    end
    if all_stand then
      if struck then call_line(token, abreast) end
      return false
    end
    struck = true
  end
  return true
end

-- Returns what to hand over for a job that delivers a batch, or nil when it was put away.
local function take_batch(job, bid)
  local header = redis.pcall('LRANGE', batch_key(bid), 0, HEADER - 1)
  if header.err or #header < HEADER then
    discard(job)
    return nil
  end
  local token = header[1]
  local subscriber = redis.call('HMGET', subscriber_key(token), 'callback', 'uuid', 'health_points',
    'throttled_until')
  if not subscriber[1] then
    remove_batch(bid, token, abreast)
    discard(job)
    return nil
  end
  redis.call('SADD', jobs_index_key(queue), job)
  if not in_turn(token, bid) then
    put_off(job, ARGV[6])
    return nil
  end
  if (tonumber(subscriber[4]) or 0) > tonumber(ARGV[4]) then -- it keeps its turn, and those behind it wait
    put_off(job, subscriber[4])
    return nil
  end
  local attempts = (tonumber(header[3]) or 0) + 1
  redis.call('LSET', batch_key(bid), 2, attempts)
  redis.call('HSET', subscriber_key(token), 'last_attempted_at', ARGV[4])
  redis.call('SREM', current_key(token), bid)
  return {
    job, token, redis.call('HGET', tokens_key(), token) or '', subscriber[1], subscriber[2] or '',
    tonumber(subscriber[3]) or 100, tonumber(header[2]) or 0, attempts,
    redis.call('LRANGE', batch_key(bid), HEADER, -1),
  }
end

allow_when_full()
redis.call('HSET', workers_key(), worker, ARGV[4])
redis.call('SADD', pending_index_key(queue), worker)
for _ = 1, MOST_PASSED_OVER do
  -- A job is pending already when the answer to an earlier call was lost.
  local job = redis.call('LINDEX', pending, -1)
    or redis.call('RPOPLPUSH', instant_key(queue), pending)
  if not job then return false end
  local bid = batch_of(queue, job)
  local taken = { job }
  if bid then taken = take_batch(job, bid) end
  if taken then return taken end
end
return false
