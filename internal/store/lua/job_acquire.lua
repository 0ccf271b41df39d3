-- Takes the next instant job for a worker and, when it delivers a batch, takes the batch
-- with it: closes it to new events and counts the attempt. A batch whose subscriber is
-- being served, or left alone after a failure, stays as it is and waits; one whose subscriber is gone
-- is dropped. What the Ruby original has of the batch is made ours first.
--
-- ARGV     1 namespace, 2 queue, 3 worker, 4 now (ms), 5 most batches of one subscriber
--          that may be delivered at once, 6 when a job told to wait comes up by itself at
--          the latest (ms), should nobody call it, 7 '1' to return the spans that the batch comes from
-- Returns  nil when there is nothing to do; {dropped}; {dropped, job}; {dropped, job, error} for one that failed here and was put off; or
--          {dropped, job, its subscriber's name, callback, uuid, health, attempts with this one, {all of the batch's list}, when it was due (ms),
--          {spans}?}. Dropped is {subscriber, events, ...}, two values for each batch whose subscriber is gone. When it was due is 0
--          where that is not known: after the first attempt, and when the batch was full before
-- Keeps    a pending job's worker in `workers` and in the index; at most one pending job a
--          worker; the batches of a subscriber delivered in the order in which they came up
local queue, worker, abreast = ARGV[2], ARGV[3], tonumber(ARGV[5])
local pending = pending_key(queue, worker)
local MOST_PASSED_OVER = 100 -- bounds one call
local POISONED_FOR = 60000 -- ms
local dropped = {}

local function discard(job)
  redis.call('RPOP', pending)
  redis.call('SREM', jobs_index_key(queue), job)
end

-- Lets a job wait until a time (ms), unless it is called before.
local function put_off(job, deadline)
  redis.call('ZADD', scheduled_key(queue), deadline, job)
  redis.call('RPOP', pending)
end

-- What this call has found out about subscribers, by token: callback, uuid, health, timeout, max_events and, if it is left alone, until
-- when; the score of the last in its line, when somebody had to join it; whether as many are being delivered as may be.
local subscribers = {}
local function subscriber_of(token)
  if not subscribers[token] then
    local found = redis.call('HMGET', subscriber_key(token), 'callback', 'uuid', 'health_points', 'throttled_until',
      'timeout', 'max_events')
    subscribers[token] = { callback = found[1], uuid = found[2] or '', health = tonumber(found[3]) or 100,
      alone_until = tonumber(found[4]) or 0, timeout = tonumber(found[5]), max = tonumber(found[6]) }
  end
  return subscribers[token]
end

-- Whether a batch of the line still has its list and its job; if not, it is struck out.
local function stands(token, bid)
  if has_list_and_job(bid) then return true end
  redis.call('ZREM', line_key(token), bid)
  return false
end

-- Joins the end of the line. Returns whether the line was empty.
local function join(token, bid, subscriber)
  subscriber.last = append_to_line(token, bid, subscriber.last or last_in_line(token))
  return subscriber.last == 1
end

-- Whether it is a batch's turn. Joins the line if it is not in it.
local function in_turn(token, bid, subscriber)
  local line = line_key(token)
  local place = redis.call('ZRANK', line, bid)
  if not place then
    if join(token, bid, subscriber) then return true end
    if subscriber.served then return false end
    place = redis.call('ZRANK', line, bid)
  end
  local struck = false
  while place >= abreast do
    subscriber.served = true
    for _, ahead in ipairs(redis.call('ZRANGE', line, 0, abreast - 1)) do
      if not stands(token, ahead) then subscriber.served = false end
    end
    if subscriber.served then
      if struck then call_line(token, 0, abreast - 1) end
      return false
    end
    struck = true
    place = redis.call('ZRANK', line, bid)
  end
  return true
end

-- Returns what to hand over for a job that delivers a batch, or nil when it was put away.
local function take_batch(job, bid)
  adopt(bid)
  local token = redis.pcall('LINDEX', batch_key(bid), 0)
  if type(token) ~= 'string' then
    if redis.call('EXISTS', original_key(bid)) == 1 then -- it is not as the original writes it: for people to look at
      put_off(job, string.format('%.0f', tonumber(ARGV[4]) + POISONED_FOR))
    else
      discard(job)
    end
    return nil
  end
  local subscriber = subscriber_of(token)
  if not subscriber.callback then
    local events = remove_batch(bid, token, abreast)
    discard(job)
    table.insert(dropped, token)
    table.insert(dropped, events)
    return nil
  end
  if not in_turn(token, bid, subscriber) then
    put_off(job, ARGV[6])
    return nil
  end
  if subscriber.alone_until > tonumber(ARGV[4]) then -- it keeps its turn, and those behind it wait
    put_off(job, string.format('%.0f', subscriber.alone_until))
    return nil
  end
  local batch = redis.call('LRANGE', batch_key(bid), 0, -1)
  if #batch < HEADER then
    remove_batch(bid, token, abreast)
    discard(job)
    return nil
  end
  local attempts = (tonumber(batch[3]) or 0) + 1
  redis.call('LSET', batch_key(bid), 2, attempts)
  redis.call('HSET', subscriber_key(token), 'last_attempted_at', ARGV[4], 'abreast', ARGV[5]) -- publishes go by the latter
  redis.pcall('SREM', current_key(token), bid)
  redis.call('SADD', jobs_index_key(queue), job)
  local due = 0
  if attempts == 1 and subscriber.timeout and subscriber.max and #batch - HEADER < subscriber.max then
    due = (tonumber(batch[2]) or 0) + subscriber.timeout
  end
  local taken = { dropped, job, redis.call('HGET', tokens_key(), token) or '', subscriber.callback, subscriber.uuid,
    subscriber.health, attempts, batch, due }
  if ARGV[7] == '1' then
    local origins = redis.pcall('LRANGE', origins_key(bid), 0, -1)
    if not origins.err then table.insert(taken, origins) end
  end
  return taken
end

allow_when_full()
for _ = 1, MOST_PASSED_OVER do
  -- A job is pending already when the answer to an earlier call was lost.
  local job = redis.call('LINDEX', pending, -1)
    or redis.call('RPOPLPUSH', instant_key(queue), pending)
  if not job then break end
  local bid = batch_of(queue, job)
  local fine, taken = true, { dropped, job }
  if bid then fine, taken = pcall(take_batch, job, bid) end
  if not fine then -- it met something that is not of its type: that must not stop the worker
    put_off(job, string.format('%.0f', tonumber(ARGV[4]) + POISONED_FOR))
    return { dropped, job, type(taken) == 'table' and taken.err or tostring(taken) }
  end
  if taken then
    redis.call('HSET', workers_key(), worker, ARGV[4])
    redis.call('SADD', pending_index_key(queue), worker)
    return taken
  end
end
if #dropped > 0 then return { dropped } end
return false
