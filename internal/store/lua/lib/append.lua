-- Appending events to the batches of a topic's subscribers: a publish does this in the topic's home
-- partition, and a relay in others.
--
-- All is read before anything is written: a subscriber that cannot be written to, because one of
-- its keys is not of its type, must fail neither the others nor halfway. An appending has:
--   now             time of receipt (ms, text)
--   seed            the first 16 characters of the UIDs of the batches opened
--   max_events, timeout (ms)  the values for subscribers without their own
--   wait_until      when a job that waits for its turn comes up by itself at the latest (ms)
--   traceparents    of the requests, separated by spaces; empty if they are not traced
--   opened          how many batches were opened; each has the next UID
-- and, for the events to append, by read_receivers:
--   receivers       the subscribers' batches that get them
--   damaged         sets of current batches that are not of their type
--   opening         how many batches will be opened
--   ends_batches    whether a batch may be full with them
local MAX_TRACEPARENTS, TRACEPARENTS_TTL = 8, 24 * 3600 * 1000 -- of one batch; in ms
local APPEND_CHUNK = 1000 -- as many values as unpack can safely push at once

-- Reads where one subscriber's events go. They are the arguments from first to last: all of them,
-- or the events of one lane if the subscriber has several.
local function read_receiver(appending, token, settings, lane, first, last)
  local current_set = lane and current_of_lane_key(token, lane.number) or current_key(token)
  local current = redis.pcall('SMEMBERS', current_set)
  if current.err then
    table.insert(appending.damaged, current_set)
    current = {}
  end
  local max = math.max(1, math.floor(tonumber(settings[2]) or appending.max_events))
  local lengths, room = {}, 0
  for i, bid in ipairs(current) do
    local length = redis.pcall('LLEN', batch_key(bid))
    lengths[i] = type(length) == 'number' and length - HEADER or -1
    if lengths[i] >= 0 then room = room + math.max(0, max - lengths[i]) end
  end
  local events = lane and #lane.events or last - first + 1
  appending.opening = appending.opening + math.max(0, math.ceil((events - room) / max))
  appending.ends_batches = appending.ends_batches or events >= room
  table.insert(appending.receivers, {
    token = token, current_set = current_set, current = current, lengths = lengths, max = max,
    timeout = math.max(0, tonumber(settings[3]) or appending.timeout), lane = lane,
    events = lane and lane.events or ARGV, first = lane and 1 or first,
    last = lane and events or last,
  })
end

-- Reads where the events go, which are the arguments from first to last, given the subscribers of
-- their topic and, by token, the lanes of subscribers with several. Returns the tokens of the
-- receivers.
local function read_receivers(appending, subscribers, laned, first, last)
  appending.receivers, appending.damaged, appending.opening = {}, {}, 0
  local tokens = {}
  for _, token in ipairs(subscribers) do
    local settings =
      redis.pcall('HMGET', subscriber_key(token), 'callback', 'max_events', 'timeout')
    if settings[1] then
      table.insert(tokens, token)
      if laned[token] then
        for _, lane in ipairs(laned[token]) do
          read_receiver(appending, token, settings, lane, first, last)
        end
      else
        read_receiver(appending, token, settings, nil, first, last)
      end
    end
  end
  return tokens
end

-- Adds to written, a table of keys and their types, the keys that are written if batches may be
-- full or are opened, and were not read.
local function written_with_batches(written)
  written[batches_index_key()], written[jobs_index_key('main')] = 'zset', 'set'
  written[scheduled_key('main')], written[instant_key('main')] = 'zset', 'list'
end

-- An error if one of these keys is not of its type, else nil.
local function wrong_type(written)
  for key_written, kind in pairs(written) do
    local is = redis.call('TYPE', key_written).ok
    if is ~= kind and is ~= 'none' then
      return redis.error_reply('WRONGTYPE ' .. key_written .. ' is a ' .. is .. ', not a ' .. kind)
    end
  end
  return nil
end

local function push_events(list, events, from, to)
  for i = from, to, APPEND_CHUNK do
    redis.call('RPUSH', list, unpack(events, i, math.min(to, i + APPEND_CHUNK - 1)))
  end
end

-- Notes the traceparents of a batch. They are informational: nothing may fail because of them.
local function note_traceparents(traceparents, bid)
  for traceparent in string.gmatch(traceparents, '%S+') do
    local length = redis.pcall('LLEN', traceparents_key(bid))
    if type(length) ~= 'number' or length >= MAX_TRACEPARENTS then return end
    redis.call('RPUSH', traceparents_key(bid), traceparent)
  end
  redis.call('PEXPIRE', traceparents_key(bid), TRACEPARENTS_TTL)
end

-- Makes a batch that is due wait for its turn, if its subscriber has the maximum in flight: then no
-- worker need find that out. Where order is promised, all its other batches must stand in the lane,
-- or it would pass them, which is right only for batches that were refused and put off. The first
-- must be alive, for it wakes the next. Returns whether it waits.
local function waits_in_lane(appending, to, bid, batches)
  if to.lane then return false end -- a worker comes by
  local lane = lane_of_subscriber(to.token)
  local length = redis.pcall('ZCARD', lane)
  if type(length) ~= 'number' or length == 0 then return false end
  appending.max_in_flight = appending.max_in_flight or noted_max_in_flight()
  if length < appending.max_in_flight then return false end
  local outside = batches - 1 - length
  if outside ~= 0 and appending.max_in_flight == 1
    and outside ~= redis.pcall('ZCOUNT', failed_key(to.token), REFUSED, '(' .. RETRIED) then
    return false
  end
  to.lane_moves = to.lane_moves or is_alive('main', redis.call('ZRANGE', lane, 0, 0)[1])
  if not to.lane_moves then return false end
  join_lane(lane, job_of(bid))
  redis.call('ZADD', scheduled_key('main'), appending.wait_until, job_of(bid))
  return true
end

-- Fills a current batch, which has length events, from event number `from`. Returns the first event
-- left over.
local function fill_batch(appending, to_whom, bid, length, from)
  local token, max = to_whom.token, to_whom.max
  if length < 0 then -- not a batch: something else than a script removed it
    redis.call('SREM', to_whom.current_set, bid)
    return from
  end
  local to = math.min(to_whom.last, from + max - length - 1)
  push_events(batch_key(bid), to_whom.events, from, to)
  if appending.traceparents ~= '' then note_traceparents(appending.traceparents, bid) end
  if length + math.max(0, to - from + 1) >= max then
    redis.call('SREM', to_whom.current_set, bid)
    local job = job_of(bid)
    -- One that waits for its turn goes on waiting.
    local lane = to_whom.lane and to_whom.lane.key or lane_of_subscriber(token)
    local waits = type(redis.pcall('ZSCORE', lane, job)) == 'string'
    if not waits and redis.call('ZSCORE', scheduled_key('main'), job) then
      local batches = tonumber(redis.pcall('HGET', batch_gauge_key(), token)) or 0
      if not waits_in_lane(appending, to_whom, bid, batches) then make_instant('main', job) end
    end
  end
  return math.max(from, to + 1)
end

-- Opens a batch with the events from number `from`; returns the first event left over.
local function open_batch(appending, to_whom, from)
  local token, max, timeout = to_whom.token, to_whom.max, to_whom.timeout
  appending.opened = appending.opened + 1
  local n, bid = appending.opened, ''
  for _ = 1, 4 do
    bid = string.sub(UID_DIGITS, n % 64 + 1, n % 64 + 1) .. bid
    n = math.floor(n / 64)
  end
  bid = appending.seed .. bid
  local job = job_of(bid)
  local to = math.min(to_whom.last, from + max - 1)
  local full = to - from + 1 >= max
  redis.call('RPUSH', batch_key(bid), token, appending.now, '0')
  push_events(batch_key(bid), to_whom.events, from, to)
  if to_whom.lane and to_whom.lane.number > 0 then
    redis.call('HSET', batch_state_key(bid), 'lane', to_whom.lane.number)
  end
  if appending.traceparents ~= '' then note_traceparents(appending.traceparents, bid) end
  redis.call('ZADD', batches_index_key(), appending.now, bid)
  local batches = change_gauge(batch_gauge_key(), token, '1')
  redis.call('SADD', jobs_index_key('main'), job)
  if not full then redis.call('SADD', to_whom.current_set, bid) end
  if full or timeout == 0 then
    if not waits_in_lane(appending, to_whom, bid, batches) then
      redis.call('LPUSH', instant_key('main'), job)
    end
  else
    redis.call('ZADD', scheduled_key('main'), exact(appending.now + timeout), job)
  end
  return to + 1
end

-- How many events there are from first to last, as a text: see change_gauge.
local function count_text(first, last)
  return first == last and '1' or exact(last - first + 1)
end

-- Appends the events to where they go.
local function append_events(appending)
  for _, current in ipairs(appending.damaged) do redis.call('DEL', current) end
  local all = nil -- bytes of all events: most receivers get all
  for _, to in ipairs(appending.receivers) do
    local bytes = to.lane and bytes_of(to.events, 1) or all
    if not bytes then
      all = bytes_of(to.events, to.first, to.last)
      bytes = all
    end
    change_gauge(event_gauge_key(), to.token, count_text(to.first, to.last))
    change_gauge(bytes_gauge_key(), to.token, exact(bytes))
    local from = to.first
    for i, bid in ipairs(to.current) do
      if from <= to.last then from = fill_batch(appending, to, bid, to.lengths[i], from) end
    end
    while from <= to.last do from = open_batch(appending, to, from) end
  end
end
