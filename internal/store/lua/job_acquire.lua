-- Takes the next instant job for a worker and, when it delivers a batch, takes the batch
-- with it: closes it to new events and counts the attempt. A batch whose subscriber is
-- being served, or left alone after a failure, stays as it is and waits; one whose subscriber is gone
-- is dropped. What the Ruby original has of the batch is made ours first.
--
-- ARGV     1 namespace, 2 queue, 3 worker, 4 now (ms), 5 most batches of one subscriber
--          that may be delivered at once, 6 when a job told to wait comes up by itself at
--          the latest (ms), should nobody call it, 7 the least standing of a subscriber whose batch may be taken (see
--          below), 8 '1' to return the spans that the batch comes from
-- Returns  nil when there is nothing to do; {dropped}; {dropped, job}; {dropped, job, error} for one that failed here and was put off; or
--          {dropped, job, its subscriber's name, callback, uuid, health, attempts with this one, {all of the batch's list}, when it was due (ms),
--          {standing, refusals since the last success, since when (ms)}, {spans}?}. Dropped is {subscriber, events,
--          ...}, two values for each batch whose subscriber is gone. When it was due is 0
--          where that is not known: after the first attempt, and when the batch was full before
-- Keeps    a pending job's worker in `workers` and in the index; at most one pending job a
--          worker; the batches of a subscriber delivered in the order in which they came up
local queue, worker, abreast = ARGV[2], ARGV[3], tonumber(ARGV[5])
local pending = pending_key(queue, worker)
local MOST_PASSED_OVER = 100 -- bounds one call
local POISONED_FOR = 60000 -- ms
-- A subscriber's standing: a delivery has failed since the last that succeeded; none has succeeded yet,
-- or it has subscribed again since one failed (throttled_until is 0); the last succeeded.
local FAILING, UNTRIED, PROVEN = 0, 1, 2
local UNWANTED_FOR = 250 -- ms, until a job is looked at again that no thread may take now
local RETRY_PAUSE, LONGEST_RETRY_PAUSE = 1000, 30000 -- ms, for a refused batch while another has its turn
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
      'timeout', 'max_events', 'events_sent')
    local standing = UNTRIED
    if (found[4] or '0') ~= '0' then standing = FAILING elseif found[7] and not found[4] then standing = PROVEN end
    subscribers[token] = { callback = found[1], uuid = found[2] or '', health = tonumber(found[3]) or 100,
      alone_until = tonumber(found[4]) or 0, standing = standing, timeout = tonumber(found[5]), max = tonumber(found[6]) }
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

-- Whether a refused batch may come up: one at a time, so that those behind it wait for one of them at most.
local function may_retry(token, bid)
  local retried = redis.call('ZRANGEBYSCORE', failed_key(token), RETRIED, RETRIED, 'LIMIT', 0, 1)[1]
  if retried == bid then return true end
  if retried then
    if redis.call('ZSCORE', line_key(token), retried) then return false end
    redis.call('ZADD', failed_key(token), REFUSED, retried)
  end
  redis.call('ZADD', failed_key(token), RETRIED, bid)
  return true
end

-- Whether a refused batch gives up its turn, because its subscriber fails, and a batch that was not refused is there to find
-- out whether it still does. All others in the line are such.
local function yields(token, bid, subscriber)
  while true do
    local first = redis.call('ZRANGE', line_key(token), 0, 1)
    local other = first[1]
    if other == bid then other = first[2] end
    if not other then return false end
    if stands(token, other) then
      subscriber.last = append_to_line(token, bid, last_in_line(token))
      call_line(token, 0, abreast - 1)
      return true
    end
  end
end

-- The refusals since a subscriber's last success, and since when they go on (ms).
local function refusals_of(token, subscriber)
  if subscriber.standing ~= FAILING then return 0, 0 end
  local found = redis.pcall('HMGET', delivery_key(token), 'refusals', 'refused_since')
  return tonumber(found[1]) or 0, tonumber(found[2]) or 0
end

-- Returns what to hand over for a job that delivers a batch, or nil when it was put away.
local function take_batch(job, bid)
  adopt(bid)
  local header = redis.pcall('LRANGE', batch_key(bid), 0, HEADER - 1) -- a table in any case
  local token, failures = header[1], tonumber(header[3]) or 0
  if not token then
    if redis.call('EXISTS', original_key(bid)) == 1 then -- it is not as the original writes it: for people to look at
      put_off(job, string.format('%.0f', tonumber(ARGV[4]) + POISONED_FOR))
    else
      discard(job)
    end
    return nil
  end
  local subscriber = subscriber_of(token)
  local holder = token
  if not subscriber.callback then holder = holder_of(token) end
  if holder ~= token then -- its client's token is being changed
    token = holder
    redis.call('LSET', batch_key(bid), 0, token)
    subscriber = subscriber_of(token)
  end
  if not subscriber.callback then
    local events = remove_batch(bid, token, abreast, failures > 0)
    discard(job)
    table.insert(dropped, token)
    table.insert(dropped, events)
    return nil
  end
  local refused = was_refused(token, bid, failures)
  if refused and not may_retry(token, bid) then
    local pause = math.max(RETRY_PAUSE, math.min(LONGEST_RETRY_PAUSE, 100 * 2 ^ failures))
    put_off(job, string.format('%.0f', tonumber(ARGV[4]) + pause))
    return nil
  end
  if not in_turn(token, bid, subscriber) or (refused and subscriber.standing == FAILING and yields(token, bid, subscriber)) then
    put_off(job, ARGV[6])
    return nil
  end
  if subscriber.alone_until > tonumber(ARGV[4]) then -- it keeps its turn, and those behind it wait
    put_off(job, string.format('%.0f', subscriber.alone_until))
    return nil
  end
  if subscriber.standing < tonumber(ARGV[7]) then
    put_off(job, string.format('%.0f', tonumber(ARGV[4]) + UNWANTED_FOR))
    return nil
  end
  local batch = redis.call('LRANGE', batch_key(bid), 0, -1)
  if #batch < HEADER then
    remove_batch(bid, token, abreast, true)
    discard(job)
    return nil
  end
  local attempts = failures + 1
  redis.call('LSET', batch_key(bid), 2, attempts)
  redis.call('HSET', subscriber_key(token), 'last_attempted_at', ARGV[4], 'abreast', ARGV[5]) -- publishes go by the latter
  redis.pcall('SREM', current_key(token), bid)
  redis.call('SADD', jobs_index_key(queue), job)
  local due = 0
  if attempts == 1 and subscriber.timeout and subscriber.max and #batch - HEADER < subscriber.max then
    due = (tonumber(batch[2]) or 0) + subscriber.timeout
  end
  local taken = { dropped, job, redis.call('HGET', tokens_key(), token) or '', subscriber.callback, subscriber.uuid,
    subscriber.health, attempts, batch, due, { subscriber.standing, refusals_of(token, subscriber) } }
  if ARGV[8] == '1' then
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
