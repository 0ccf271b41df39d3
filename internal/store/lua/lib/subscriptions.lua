-- Sets the subscription of a subscriber, for subscriber_put and subscriber_patch. Both have these
-- arguments:
--
-- ARGV     namespace; SubscriberArgs of subscribers.go; then field, value, ..., option, value
--          (JSON, empty for the default), ..., then all topics

local function read_subscription()
  local token, now, max_events, timeout, max_client_topics, max_topics, callback, options_version,
    fields, options, with_topics, anyway = unpack(ARGV, 2, 13)
  local next = 14
  local function read_pairs(n)
    local found = {}
    for _ = 1, n do
      found[ARGV[next]] = ARGV[next + 1]
      next = next + 2
    end
    return found
  end
  local sent = {
    token = token, now = tonumber(now), max_events = max_events, timeout = timeout,
    max_client_topics = tonumber(max_client_topics), max_topics = tonumber(max_topics),
    callback = callback, options_version = options_version, anyway = anyway == '1',
  }
  sent.fields = read_pairs(tonumber(fields))
  sent.options = read_pairs(tonumber(options))
  if with_topics == '1' then
    sent.topics = {}
    for i = next, #ARGV do sent.topics[ARGV[i]] = true end
  end
  return sent
end

-- Which of the topics are new to the bus, for a client of a name; and the limit that they exceed,
-- if they do. On a bus with partitions they may be new here alone: their homes decide.
local function new_topics(sent, name)
  local new, more = {}, 0
  for topic in pairs(sent.topics or {}) do
    if redis.call('SISMEMBER', topics_key(), topic) == 0 then
      table.insert(new, topic)
      if redis.call('HGET', owners_key(), topic) ~= name then more = more + 1 end
    end
  end
  if KEYS[1] then return new, nil end
  return new, owners().over_limit(name, more, #new, sent.max_client_topics, sent.max_topics)
end

-- Reads the keys that will be written and would raise an error if they were not of their type, so
-- that no subscriber is half made. Returns the topics it is subscribed to.
local function read_subscriber(token, sent)
  local subscribed = redis.call('SMEMBERS', subscriber_topics_key(token))
  redis.call('SCARD', subscribers_key())
  for topic in pairs(sent.topics or {}) do redis.call('SCARD', topic_subscribers_key(topic)) end
  for _, topic in ipairs(subscribed) do redis.call('SCARD', topic_subscribers_key(topic)) end
  if next(sent.options) then
    redis.call('HLEN', options_key(token))
    redis.call('SCARD', retention_key())
  end
  return subscribed
end

-- Whether there is a subscriber, as deliveries see it or lists.
local function is_subscriber(token)
  return redis.call('SISMEMBER', subscribers_key(), token) == 1
    or redis.pcall('HEXISTS', subscriber_key(token), 'callback') == 1
end

local MAX_CLEARED, MAX_CLEARED_EVENTS = 100, 1000 -- dead letters, and their events, of one step

-- Removes dead letters of a token that is no subscriber. Returns whether some are left.
local function clear_letters(token)
  local events = 0
  for _, bid in ipairs(redis.pcall('ZRANGE', dead_letters_key(token), 0, MAX_CLEARED - 1)) do
    if events >= MAX_CLEARED_EVENTS then break end
    local length = events_in_letter(bid)
    remove_letter(token, bid, length)
    events = events + length
  end
  local left = redis.pcall('ZCARD', dead_letters_key(token))
  return type(left) == 'number' and left > 0
end

-- Clears the leftovers of an earlier subscription of a token that is about to subscribe anew.
-- Returns its batches that are in flight, and what has to be removed first, if anything.
local function clear_former(token, sent)
  if is_subscriber(token) then return {}, nil end
  if clear_letters(token) then return {}, 'former letters' end
  local batches = tonumber(redis.pcall('HGET', batch_gauge_key(), token)) or 0
  if batches < 1 then return {}, nil end
  local in_flight = setbacks().in_flight(token)
  if batches > #in_flight and not sent.anyway then return {}, 'former batches' end
  return in_flight, nil
end

-- Writes a subscriber's own keys. A key that only deliveries need is removed if it has another
-- type.
local function write_subscriber(token, sent, name)
  local subscriber = subscriber_key(token)
  if sent.callback ~= '' then -- first, so that a full Redis refuses the whole
    redis.call('HSET', subscriber, 'callback', sent.callback)
  end
  for field, value in pairs(sent.fields) do redis.call('HSET', subscriber, field, value) end
  for key, kind in pairs({
    [current_key(token)] = 'set', [lane_of_subscriber(token)] = 'zset',
    [failed_key(token)] = 'zset', [delivery_key(token)] = 'hash',
  }) do
    if redis.call('TYPE', key).ok ~= kind then redis.call('DEL', key) end
  end
  redis.call('HSETNX', subscriber, 'max_events', sent.max_events)
  redis.call('HSETNX', subscriber, 'timeout', sent.timeout)
  redis.call('HSETNX', subscriber, 'health_points', 100)
  redis.call('SADD', subscribers_key(), token)
  redis.call('HSET', delivery_key(token), 'name', name)
end

-- Lets the bus try a subscriber whose deliveries fail at once: the cause may be fixed.
local function try_subscriber(token)
  local made = setbacks()
  made.retry_refused(token)
  if redis.call('HEXISTS', delivery_key(token), 'throttled_until') == 0 then return end
  made.end_throttle(token, 0, 0)
  made.overtake(token)
  -- Untried: to subscribe again proves nothing.
  redis.call('HSET', delivery_key(token), 'throttled_until', 0)
  wake_subscriber(token)
end

-- Whether a change may fix failing deliveries: their target, their credentials or their size.
local function may_mend(sent)
  return sent.callback ~= '' or sent.fields.uuid or sent.options.max_bytes
end

-- Limits how long a current batch waits to the new timeout, and its events to the new maximum.
local function fit_current(token, now)
  local limits = redis.call('HMGET', subscriber_key(token), 'timeout', 'max_events')
  local latest = now + (tonumber(limits[1]) or 0)
  local max_events = tonumber(limits[2]) or math.huge
  local lanes = subscriber_lanes()
  for _, bid in ipairs(lanes.current_batches(token)) do
    local job = job_of(bid)
    local lane, _, current_set = lanes.of(token, bid, 1)
    local waits = redis.call('ZSCORE', lane, job)
    local deadline = tonumber(redis.call('ZSCORE', scheduled_key('main'), job))
    local length = redis.pcall('LLEN', batch_key(bid))
    if type(length) ~= 'number' or length - HEADER >= max_events then
      redis.call('SREM', current_set, bid)
      if not waits then make_instant('main', job) end
    elseif deadline and deadline > latest and not waits then
      redis.call('ZADD', scheduled_key('main'), exact(latest), job)
    end
  end
end

-- Subscribes to exactly the given topics; subscribed are the earlier ones, new those new to the
-- bus.
local function write_topics(token, sent, name, subscribed, new)
  for _, topic in ipairs(new) do
    redis.call('SADD', topics_key(), topic)
    if not KEYS[1] then owners().set(topic, name) end
  end
  for topic in pairs(sent.topics) do
    redis.call('SADD', topic_subscribers_key(topic), token)
    redis.call('SADD', subscriber_topics_key(token), topic)
  end
  for _, topic in ipairs(subscribed) do
    if not sent.topics[topic] then
      redis.call('SREM', topic_subscribers_key(topic), token)
      redis.call('SREM', subscriber_topics_key(token), topic)
    end
  end
end

-- Stores the sent fields for a client of a name. Omitted fields keep their value, or take their
-- default. Returns what the scripts return. An error, because a key is not of its type, changes no
-- subscription.
local function put_subscription(sent, name)
  local new, refused = new_topics(sent, name)
  if refused then return { 0, refused } end
  -- A client whose token is being changed has one subscription, whichever it uses.
  local token = holder_of(sent.token)
  local subscribed = read_subscriber(token, sent)
  local former, left = clear_former(token, sent)
  if left then return { 0, left } end
  write_subscriber(token, sent, name)
  if former[1] then redis.call('HSET', delivery_key(token), 'former', table.concat(former, ' ')) end
  put_options(token, sent.options, sent.options_version)
  if may_mend(sent) then try_subscriber(token) end
  fit_current(token, sent.now)
  if sent.topics then write_topics(token, sent, name, subscribed, new) end
  return { 1 }
end
