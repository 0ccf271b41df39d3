-- Publishes events to one topic: stores them in a batch of every subscriber.
--
-- ARGV     1 namespace, 2 topic, 3 publisher's token, 4 now (ms),
--          5 first 16 characters of the UIDs of the batches opened,
--          6 default max_events, 7 default timeout (ms), 8 idempotency key, empty for none,
--          9 digest of the request, 10 life of an idempotency key (ms), 11.. packed events,
--          oldest first
-- Returns  1; 2 when the request was stored before; 0 when another client publishes to the topic;
--          -1 when another request had its idempotency key; -2 when the token is not known
-- Keeps    every event in one batch of each subscriber; every batch with one job, its
--          index entry and its gauges; a current batch neither full nor closed
local topic, publisher, now, seed = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local default_max, default_timeout = tonumber(ARGV[6]), tonumber(ARGV[7])
local FIRST, LAST = 11, #ARGV
local CHUNK = 1000 -- as many values as unpack can safely push at once
local UID_DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

local name = redis.call('HGET', tokens_key(), publisher)
if not name then return -2 end
local owner = redis.call('HGET', topic_key(topic), 'publisher')
if owner and owner ~= '' and owner ~= publisher and redis.call('HGET', tokens_key(), owner) ~= name then
  return 0 -- it is not another token of the same client either
end
if ARGV[8] ~= '' then
  local before = redis.call('GET', idempotency_key(name, ARGV[8]))
  if before then return before == ARGV[9] and 2 or -1 end
end
redis.call('HINCRBY', topic_key(topic), 'counter', LAST - FIRST + 1)
redis.call('HSET', topic_key(topic), 'publisher', publisher, 'last_event', ARGV[LAST])
if owner ~= publisher then redis.call('SADD', topics_key(), topic) end

local opened = 0
local function new_uid()
  opened = opened + 1
  local n, digits = opened, ''
  for _ = 1, 4 do
    digits = string.sub(UID_DIGITS, n % 64 + 1, n % 64 + 1) .. digits
    n = math.floor(n / 64)
  end
  return seed .. digits
end

local function push(bid, from, to)
  for i = from, to, CHUNK do
    redis.call('RPUSH', batch_key(bid), unpack(ARGV, i, math.min(to, i + CHUNK - 1)))
  end
end

-- Fills a current batch from event number `from`; returns the first event left over.
local function fill(token, bid, from, max)
  local length = redis.call('LLEN', batch_key(bid)) - HEADER
  if length < 0 then -- not a batch: something else than a script removed it
    redis.call('SREM', current_key(token), bid)
    return from
  end
  local to = math.min(LAST, from + max - length - 1)
  push(bid, from, to)
  if length + math.max(0, to - from + 1) >= max then
    redis.call('SREM', current_key(token), bid)
    -- One that waits for its turn goes on waiting.
    if not redis.call('ZSCORE', line_key(token), bid) then make_instant(job_of(bid), 'LPUSH') end
  end
  return math.max(from, to + 1)
end

-- Opens a batch with the events from number `from`; returns the first event left over.
local function open(token, from, max, timeout)
  local bid = new_uid()
  local job = job_of(bid)
  local to = math.min(LAST, from + max - 1)
  local full = to - from + 1 >= max
  redis.call('RPUSH', batch_key(bid), token, ARGV[4], 0)
  push(bid, from, to)
  redis.call('ZADD', batches_index_key(), ARGV[4], bid)
  redis.call('HINCRBY', batch_gauge_key(), token, 1)
  redis.call('SADD', jobs_index_key('main'), job)
  if not full then redis.call('SADD', current_key(token), bid) end
  if full or timeout == 0 then
    redis.call('LPUSH', instant_key('main'), job)
  else
    redis.call('ZADD', scheduled_key('main'), string.format('%.0f', now + timeout), job)
  end
  return to + 1
end

for _, token in ipairs(redis.call('SMEMBERS', topic_subscribers_key(topic))) do
  local settings = redis.call('HMGET', subscriber_key(token), 'callback', 'max_events', 'timeout')
  if settings[1] then
    local max = math.max(1, math.floor(tonumber(settings[2]) or default_max))
    local timeout = math.max(0, tonumber(settings[3]) or default_timeout)
    redis.call('HINCRBY', event_gauge_key(), token, LAST - FIRST + 1)
    local from = FIRST
    for _, bid in ipairs(redis.call('SMEMBERS', current_key(token))) do
      if from <= LAST then from = fill(token, bid, from, max) end
    end
    while from <= LAST do from = open(token, from, max, timeout) end
  end
end
-- Last, so that a script that fails on the way is not taken for done.
if ARGV[8] ~= '' then
  redis.call('SET', idempotency_key(name, ARGV[8]), ARGV[9], 'PX', ARGV[10])
end
return 1
