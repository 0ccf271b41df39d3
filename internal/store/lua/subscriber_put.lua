-- Stores a subscription: what it does not name keeps its value, or takes its default. A current batch
-- does not wait longer than the timeout that holds from now on, and a subscriber that was left alone after
-- failures is tried at once.
--
-- ARGV     1 namespace, 2 token, 3 callback, 4 default max_events, 5 default timeout (ms),
--          6 now (ms), 7 number of fields that follow, 8.. field, value, ..., then all topics
-- Returns  1, or 0 when the token is not known
-- Keeps    topics:{token} and subscribers:{name} each other's mirror
local token, values = ARGV[2], tonumber(ARGV[7]) * 2
if redis.call('HEXISTS', tokens_key(), token) == 0 then return 0 end
local subscriber = subscriber_key(token)
redis.call('HSET', subscriber, 'callback', ARGV[3])
for i = 8, 7 + values, 2 do redis.call('HSET', subscriber, ARGV[i], ARGV[i + 1]) end
redis.call('HSETNX', subscriber, 'max_events', ARGV[4])
redis.call('HSETNX', subscriber, 'timeout', ARGV[5])
redis.call('HSETNX', subscriber, 'health_points', 100)
redis.call('SADD', subscribers_key(), token)
if redis.call('HEXISTS', subscriber, 'throttled_until') == 1 then
  end_failure(token, tonumber(ARGV[6]))
  call_first(token)
end

local latest = tonumber(ARGV[6]) + (tonumber(redis.call('HGET', subscriber, 'timeout')) or 0)
for _, bid in ipairs(redis.call('SMEMBERS', current_key(token))) do
  local job = job_of(bid)
  local deadline = tonumber(redis.call('ZSCORE', scheduled_key('main'), job))
  if deadline and deadline > latest and not redis.call('ZSCORE', line_key(token), bid) then
    redis.call('ZADD', scheduled_key('main'), string.format('%.0f', latest), job)
  end
end

local wanted = {}
for i = 8 + values, #ARGV do
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
