-- Stores a subscription: what it does not name keeps its value, or takes its default.
--
-- ARGV     1 namespace, 2 token, 3 callback, 4 default max_events, 5 default timeout (ms),
--          6 number of fields that follow, 7.. field, value, ..., then all topics
-- Returns  1
-- Keeps    topics:{token} and subscribers:{name} each other's mirror
local token, values = ARGV[2], tonumber(ARGV[6]) * 2
local subscriber = subscriber_key(token)
redis.call('HSET', subscriber, 'callback', ARGV[3])
for i = 7, 6 + values, 2 do redis.call('HSET', subscriber, ARGV[i], ARGV[i + 1]) end
redis.call('HSETNX', subscriber, 'max_events', ARGV[4])
redis.call('HSETNX', subscriber, 'timeout', ARGV[5])
redis.call('HSETNX', subscriber, 'health_points', 100)
redis.call('SADD', subscribers_key(), token)

local wanted = {}
for i = 7 + values, #ARGV do
  local name = ARGV[i]
  wanted[name] = true
  redis.call('SADD', topics_key(), name)
  redis.call('SADD', topic_subscribers_key(name), token)
  redis.call('SADD', subscriber_topics_key(token), name)
end
for _, name in ipairs(redis.call('SMEMBERS', subscriber_topics_key(token))) do
  if not wanted[name] then
    redis.call('SREM', topic_subscribers_key(name), token)
    redis.call('SREM', subscriber_topics_key(token), name)
  end
end
return 1
