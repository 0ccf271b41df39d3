-- Publishes events to one topic: stores them in a batch of every subscriber.
--
-- ARGV     1 namespace, 2 topic, 3 publisher's token, 4 now (ms), 5 first 16 characters of the UIDs
--          of the batches opened, 6 default max_events, 7 default timeout (ms), 8 digest of the
--          idempotency key, empty for none, 9 digest of the request, 10 TTL of an idempotency key
--          (ms), 11 traceparents of the requests if they are traced, separated by spaces, 12 when a
--          job that waits for its turn comes up by itself at the latest (ms), 13 max idempotency
--          keys in a slice, 14 max batches to open, 15 max topics of a client, 16 max topics of the
--          bus, 17 number of the values of lanes, 18.. of each subscriber with several: token,
--          version of its lanes, for each event the character of its lane; then packed events,
--          oldest first
-- Returns  {1, the subscribers' tokens}, with a space between two, so that they are cheap to
--          return; and a third value, how many idempotency keys had to go, if any had to. {1} when
--          the request was stored before. {0, 'topic claimed'} when another client publishes to the
--          topic; {0, 'key reused'} when another request had its idempotency key; {0, 'token
--          unknown'}; {0, 'too many batches'} when it would open too many; {0, "client's topics"}
--          when the client has too many to claim one more, {0, "bus's topics"} when the bus has;
--          {0, 'lanes', tokens and versions, with spaces between} of all subscribers of the topic
--          that have several, when these are not the lanes sent. An error, before anything is
--          written, when a key that all subscribers share is not of its type
-- Keeps    every event in one batch of each subscriber; every batch with one job, its
--          index entry and its gauges; a current batch neither full nor closed
-- Cost     commands for one event and one subscriber: 11 for one that joins a current batch,
--          20 for one that opens and fills a batch;
--          2 more where there are plans; 3 more if the topic keeps a history, 5 once that has all
--          that it may; 1 more while somebody watches the topic
local topic, publisher, now, seed = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local default_max, default_timeout = tonumber(ARGV[6]), tonumber(ARGV[7])
local FIRST, LAST = 18 + ARGV[17], #ARGV
local EVENTS = LAST - FIRST + 1
local MAX_TRACEPARENTS, TRACEPARENTS_TTL = 8, 24 * 3600 * 1000 -- of one batch; in ms
local CHUNK = 1000 -- as many values as unpack can safely push at once

local name = redis.call('HGET', tokens_key(), publisher)
if not name then return { 0, 'token unknown' } end
local topic_hash = topic_key(topic)
local owner = redis.call('HGET', topic_hash, 'publisher')
local claims = not owner or owner == ''
if not claims and owner ~= publisher and owner_name(topic, owner) ~= name then
  return { 0, 'topic claimed' } -- it was not claimed with another token of the same client either
end
local key, digest, life, keys, slice = ARGV[8], ARGV[9], tonumber(ARGV[10]), nil, nil
if key ~= '' then
  keys = idempotency_keys(name)
  local all = keys.read(key, now)
  local before, found = keys.find(all)
  if before and before ~= digest then return { 0, 'key reused' } end
  if before then
    keys.renew(found, now, life)
    return { 1 }
  end
  slice = keys.choose(all, now, life, tonumber(ARGV[13]))
end
local subscribers = redis.call('SMEMBERS', topic_subscribers_key(topic))
local plans, laned = false, {} -- what has to be known beyond the founding keys
if redis.call('HLEN', plans_key()) > 0 then
  plans = publish_plans(topic, subscribers)
  laned = plans.lanes(18, FIRST)
  if not laned then return plans.stale() end
end
-- A subscriber that cannot be written to, because something of it is not of its type, must fail
-- neither the others nor halfway. So all is read before anything is written.
local receivers, damaged, opening, ends_batches = {}, {}, 0, false

-- Reads where events go: all, or those of a lane of a subscriber that has several.
local function read_receiver(token, settings, lane)
  local current_set = lane and current_of_lane_key(token, lane.number) or current_key(token)
  local current = redis.pcall('SMEMBERS', current_set)
  if current.err then
    table.insert(damaged, current_set)
    current = {}
  end
  local max, lengths, room = math.max(1, math.floor(tonumber(settings[2]) or default_max)), {}, 0
  for i, bid in ipairs(current) do
    local length = redis.pcall('LLEN', batch_key(bid))
    lengths[i] = type(length) == 'number' and length - HEADER or -1
    if lengths[i] >= 0 then room = room + math.max(0, max - lengths[i]) end
  end
  local events = lane and #lane.events or EVENTS
  opening = opening + math.max(0, math.ceil((events - room) / max))
  ends_batches = ends_batches or events >= room
  table.insert(receivers, {
    token = token, current_set = current_set, current = current, lengths = lengths, max = max,
    timeout = math.max(0, tonumber(settings[3]) or default_timeout), lane = lane,
    events = lane and lane.events or ARGV, first = lane and 1 or FIRST,
    last = lane and events or LAST,
  })
end

local tokens = {}
for _, token in ipairs(subscribers) do
  local settings = redis.pcall('HMGET', subscriber_key(token), 'callback', 'max_events', 'timeout')
  if settings[1] then
    table.insert(tokens, token)
    if laned[token] then
      for _, lane in ipairs(laned[token]) do read_receiver(token, settings, lane) end
    else
      read_receiver(token, settings, nil)
    end
  end
end
if opening > tonumber(ARGV[14]) then return { 0, 'too many batches' } end

-- What is written below and was not read above, with its type: nothing, where events only join
-- current batches.
local written = {}
if owner ~= publisher then
  written[topics_key()], written[owners_key()], written[owned_key()] = 'set', 'hash', 'hash'
end
if ends_batches then
  written[batches_index_key()], written[jobs_index_key('main')] = 'zset', 'set'
  written[scheduled_key('main')], written[instant_key('main')] = 'zset', 'list'
end
for key_written, kind in pairs(written) do
  local is = redis.call('TYPE', key_written).ok
  if is ~= kind and is ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. key_written .. ' is a ' .. is .. ', not a ' .. kind)
  end
end
if claims then
  local more, new = 0, 0
  if redis.call('HGET', owners_key(), topic) ~= name then more = 1 end
  if redis.call('SISMEMBER', topics_key(), topic) == 0 then new = 1 end
  local refused = owners().over_limit(name, more, new, tonumber(ARGV[15]), tonumber(ARGV[16]))
  if refused then return { 0, refused } end
end

for _, current in ipairs(damaged) do redis.call('DEL', current) end
local counter = redis.call('HINCRBY', topic_hash, 'counter', EVENTS)
redis.call('HSET', topic_hash, 'last_event', ARGV[LAST])
if owner ~= publisher then
  redis.call('HSET', topic_hash, 'publisher', publisher)
  redis.call('SADD', topics_key(), topic)
  owners().set(topic, name)
end

local opened = 0 -- batches, of which each has the next UID
local function push(bid, events, from, to)
  for i = from, to, CHUNK do
    redis.call('RPUSH', batch_key(bid), unpack(events, i, math.min(to, i + CHUNK - 1)))
  end
end

local traced = ARGV[11] ~= ''
-- Notes the traceparents of a batch. They are informational: nothing may fail because of them.
local function note_traceparents(bid)
  for traceparent in string.gmatch(ARGV[11], '%S+') do
    local length = redis.pcall('LLEN', traceparents_key(bid))
    if type(length) ~= 'number' or length >= MAX_TRACEPARENTS then return end
    redis.call('RPUSH', traceparents_key(bid), traceparent)
  end
  redis.call('PEXPIRE', traceparents_key(bid), TRACEPARENTS_TTL)
end

-- Has a batch that is to be delivered wait for its turn, if its subscriber has as many in flight as
-- may be: then no worker need find that out. Where order is promised, all its other batches must
-- stand in the lane, or it would pass them, which is right only for those that were refused and are
-- put off. The first must be alive, for it wakes the next. Returns whether it waits.
local max_in_flight
local function waits_in_lane(to, bid, batches)
  if to.lane then return false end -- a worker comes by
  local lane = lane_of_subscriber(to.token)
  local length = redis.pcall('ZCARD', lane)
  if type(length) ~= 'number' or length == 0 then return false end
  max_in_flight = max_in_flight or noted_max_in_flight()
  if length < max_in_flight then return false end
  local outside = batches - 1 - length
  if outside ~= 0 and max_in_flight == 1
    and outside ~= redis.pcall('ZCOUNT', failed_key(to.token), REFUSED, '(' .. RETRIED) then
    return false
  end
  to.lane_moves = to.lane_moves or is_alive('main', redis.call('ZRANGE', lane, 0, 0)[1])
  if not to.lane_moves then return false end
  join_lane(lane, job_of(bid))
  redis.call('ZADD', scheduled_key('main'), ARGV[12], job_of(bid))
  return true
end

-- Fills a current batch, which has so many events, from event number `from`. Returns the first
-- event left over.
local function fill(to_whom, bid, length, from)
  local token, max = to_whom.token, to_whom.max
  if length < 0 then -- not a batch: something else than a script removed it
    redis.call('SREM', to_whom.current_set, bid)
    return from
  end
  local to = math.min(to_whom.last, from + max - length - 1)
  push(bid, to_whom.events, from, to)
  if traced then note_traceparents(bid) end
  if length + math.max(0, to - from + 1) >= max then
    redis.call('SREM', to_whom.current_set, bid)
    local job = job_of(bid)
    -- One that waits for its turn goes on waiting.
    local lane = to_whom.lane and to_whom.lane.key or lane_of_subscriber(token)
    local waits = type(redis.pcall('ZSCORE', lane, job)) == 'string'
    if not waits and redis.call('ZSCORE', scheduled_key('main'), job) then
      local batches = tonumber(redis.pcall('HGET', batch_gauge_key(), token)) or 0
      if not waits_in_lane(to_whom, bid, batches) then make_instant('main', job) end
    end
  end
  return math.max(from, to + 1)
end

-- Opens a batch with the events from number `from`; returns the first event left over.
local function open(to_whom, from)
  local token, max, timeout = to_whom.token, to_whom.max, to_whom.timeout
  opened = opened + 1
  local n, bid = opened, ''
  for _ = 1, 4 do
    bid = string.sub(UID_DIGITS, n % 64 + 1, n % 64 + 1) .. bid
    n = math.floor(n / 64)
  end
  bid = seed .. bid
  local job = job_of(bid)
  local to = math.min(to_whom.last, from + max - 1)
  local full = to - from + 1 >= max
  redis.call('RPUSH', batch_key(bid), token, ARGV[4], 0)
  push(bid, to_whom.events, from, to)
  if to_whom.lane then to_whom.lane.note(bid) end
  if traced then note_traceparents(bid) end
  redis.call('ZADD', batches_index_key(), ARGV[4], bid)
  local batches = change_gauge(batch_gauge_key(), token, 1)
  redis.call('SADD', jobs_index_key('main'), job)
  if not full then redis.call('SADD', to_whom.current_set, bid) end
  if full or timeout == 0 then
    if not waits_in_lane(to_whom, bid, batches) then
      redis.call('LPUSH', instant_key('main'), job)
    end
  else
    redis.call('ZADD', scheduled_key('main'), string.format('%.0f', now + timeout), job)
  end
  return to + 1
end

for _, to in ipairs(receivers) do
  change_gauge(event_gauge_key(), to.token, to.last - to.first + 1)
  local from = to.first
  for i, bid in ipairs(to.current) do
    if from <= to.last then from = fill(to, bid, to.lengths[i], from) end
  end
  while from <= to.last do from = open(to, from) end
end
if plans then
  if plans.keeps_history then histories().append(topic, now, FIRST, LAST, counter) end
  plans.tell(FIRST, LAST)
end
-- Last, so that a script that fails on the way is not taken for done.
if slice then
  local dropped = keys.put(slice, key, digest, now, life)
  if dropped > 0 then return { 1, table.concat(tokens, ' '), dropped } end
end
return { 1, table.concat(tokens, ' ') }
