-- Stores a subscription: what it does not name keeps its value, or takes its default. A current
-- batch does not wait longer than the timeout that holds from now on, or take in more events than
-- may be, and a subscriber that was throttled is tried at once.
--
-- ARGV     1 namespace, 2 token, 3 callback, 4 default max_events, 5 default timeout (ms),
--          6 now (ms), 7 max topics of a client, 8 max topics of the bus, 9 number of fields
--          that follow, 10.. field, value, ..., then all topics
-- Returns  {1}; {0, 'token unknown'}; {0, "client's topics"} when the client would have named too
--          many, {0, "bus's topics"} when the bus would have too many
-- Keeps    topics:{token} and subscribers:{name} each other's mirror; an error, because a key is
--          not of its type, changes no subscription
local token, FIELDS, TOPICS = ARGV[2], 10, 10 + tonumber(ARGV[9]) * 2
local name = redis.call('HGET', tokens_key(), token)
if not name then return { 0, 'token unknown' } end

local wanted, new, more = {}, {}, 0
for i = TOPICS, #ARGV do
  local topic = ARGV[i]
  if not wanted[topic] and redis.call('SISMEMBER', topics_key(), topic) == 0 then
    table.insert(new, topic)
    if redis.call('HGET', owners_key(), topic) ~= name then more = more + 1 end
  end
  wanted[topic] = true
end
local refused = owners().over_limit(name, more, #new, tonumber(ARGV[7]), tonumber(ARGV[8]))
if refused then return { 0, refused } end

-- A client whose token is being changed has one subscription, whichever it uses.
token = holder_of(token)

-- No subscriber is half made because a key is not of its type: the sets of topics and subscribers
-- are read before anything is written, and the subscriber is written to first. Further down, what
-- only deliveries need is removed if it is of another type.
local subscribed = redis.call('SMEMBERS', subscriber_topics_key(token))
redis.call('SCARD', subscribers_key())
for topic in pairs(wanted) do redis.call('SCARD', topic_subscribers_key(topic)) end
for _, topic in ipairs(subscribed) do redis.call('SCARD', topic_subscribers_key(topic)) end

local subscriber = subscriber_key(token)
redis.call('HSET', subscriber, 'callback', ARGV[3]) -- which a full Redis refuses
for key, kind in pairs({
  [current_key(token)] = 'set', [lane_of_subscriber(token)] = 'zset', [failed_key(token)] = 'zset',
  [delivery_key(token)] = 'hash',
}) do
  if redis.call('TYPE', key).ok ~= kind then redis.call('DEL', key) end
end
for i = FIELDS, TOPICS - 1, 2 do redis.call('HSET', subscriber, ARGV[i], ARGV[i + 1]) end
redis.call('HSETNX', subscriber, 'max_events', ARGV[4])
redis.call('HSETNX', subscriber, 'timeout', ARGV[5])
redis.call('HSETNX', subscriber, 'health_points', 100)
redis.call('SADD', subscribers_key(), token)

local state = redis.call('HMGET', delivery_key(token), 'throttled_until', 'refused_since')
redis.call('HSET', delivery_key(token), 'name', name)
if state[1] then
  setbacks().end_throttle(token, tonumber(state[2]) or 0, tonumber(ARGV[6]))
  -- Untried: to subscribe again proves nothing.
  redis.call('HSET', delivery_key(token), 'throttled_until', 0)
  wake_subscriber(token)
end

local limits = redis.call('HMGET', subscriber, 'timeout', 'max_events')
local latest = tonumber(ARGV[6]) + (tonumber(limits[1]) or 0)
local max_events = tonumber(limits[2]) or math.huge
for _, bid in ipairs(redis.call('SMEMBERS', current_key(token))) do
  local job = job_of(bid)
  local waits = redis.call('ZSCORE', lane_of_subscriber(token), job)
  local deadline = tonumber(redis.call('ZSCORE', scheduled_key('main'), job))
  local length = redis.pcall('LLEN', batch_key(bid))
  if type(length) ~= 'number' or length - HEADER >= max_events then
    redis.call('SREM', current_key(token), bid)
    if not waits then make_instant('main', job) end
  elseif deadline and deadline > latest and not waits then
    redis.call('ZADD', scheduled_key('main'), milliseconds(latest), job)
  end
end

for _, topic in ipairs(new) do
  redis.call('SADD', topics_key(), topic)
  owners().set(topic, name)
end
for topic in pairs(wanted) do
  redis.call('SADD', topic_subscribers_key(topic), token)
  redis.call('SADD', subscriber_topics_key(token), topic)
end
for _, topic in ipairs(subscribed) do
  if not wanted[topic] then
    redis.call('SREM', topic_subscribers_key(topic), token)
    redis.call('SREM', subscriber_topics_key(token), topic)
  end
end
return { 1 }
