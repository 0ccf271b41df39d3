-- Checks that a topic and a subscriber name each other, or neither the other.
--
-- ARGV     1 namespace, 2 '1' to fix it, 3 token, 4 topic
-- Returns  what is wrong, of 'half', 'topicless', 'dead'
-- Keeps    a subscription of which one side is left, if its subscriber is there
local token, name = ARGV[3], ARGV[4]
local of_subscriber = redis.call('SISMEMBER', subscriber_topics_key(token), name) == 1
local of_topic = redis.call('SISMEMBER', topic_subscribers_key(name), token) == 1
if not of_subscriber and not of_topic then return {} end
if redis.call('SISMEMBER', subscribers_key(), token) == 0 and not has_callback(token) then
  if fix then
    redis.call('SREM', subscriber_topics_key(token), name)
    redis.call('SREM', topic_subscribers_key(name), token)
  end
  return { 'dead' }
end
local found = {}
if not (of_subscriber and of_topic) then table.insert(found, 'half') end
local topic_there = redis.call('EXISTS', topic_key(name)) == 1
if not topic_there and redis.call('SISMEMBER', topics_key(), name) == 0 then
  table.insert(found, 'topicless')
end
if fix and #found > 0 then
  redis.call('SADD', topics_key(), name)
  redis.call('SADD', topic_subscribers_key(name), token)
  redis.call('SADD', subscriber_topics_key(token), name)
end
return found
