-- Checks that a topic and a subscriber name each other, or neither the other.
--
-- ARGV     1 namespace, 2 '1' to fix it, 3 token, 4 topic
-- Returns  what is wrong, of 'subscription_half', 'subscription_topicless', 'subscription_dead', 'topics_foreign',
--          'subscribers_foreign'
-- Keeps    a subscription of which one side is left, if its subscriber is there; and sets that are not the bus's
local token, name = ARGV[3], ARGV[4]
local of_subscriber = redis.call('SISMEMBER', subscriber_topics_key(token), name) == 1
local of_topic = redis.call('SISMEMBER', topic_subscribers_key(name), token) == 1
if not of_subscriber and not of_topic then return {} end
local valid = is_token(token) and is_topic_name(name)
local found = {}

if valid and is_subscriber(token) and (of_subscriber or is_topic(name)) then
  if not (of_subscriber and of_topic) then table.insert(found, 'subscription_half') end
  if not is_topic(name) then table.insert(found, 'subscription_topicless') end
  if fix and #found > 0 then
    redis.call('SADD', topics_key(), name)
    redis.call('SADD', topic_subscribers_key(name), token)
    redis.call('SADD', subscriber_topics_key(token), name)
  end
  return found
end

-- A set is the bus's if that knows whom it is named after.
local known, topic = false, false
if valid then
  known, topic = is_known(token), is_topic(name)
end
local dead = false
if of_subscriber then
  if known or (topic and of_topic) then
    dead = true
    if fix then redis.call('SREM', subscriber_topics_key(token), name) end
  else
    table.insert(found, 'topics_foreign')
  end
end
if of_topic then
  if topic then
    dead = true
    if fix then redis.call('SREM', topic_subscribers_key(name), token) end
  else
    table.insert(found, 'subscribers_foreign')
  end
end
if dead then table.insert(found, 'subscription_dead') end
return found
