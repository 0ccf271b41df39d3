-- Deletes a topic and all subscriptions to it. Events that are queued stay.
--
-- ARGV     1 namespace, 2 topic, 3 token of who asks, empty for root
-- Returns  1, 0 when there is no such topic, -1 when it is another client's
local name, by = ARGV[2], ARGV[3]
if redis.call('SISMEMBER', topics_key(), name) == 0 then return 0 end
if by ~= '' then
  local owner = redis.call('HGET', topic_key(name), 'publisher')
  if not owner then return -1 end
  local client = redis.call('HGET', tokens_key(), by)
  if owner ~= by and not (client and client == redis.call('HGET', tokens_key(), owner)) then return -1 end
end
for _, token in ipairs(redis.call('SMEMBERS', topic_subscribers_key(name))) do
  redis.call('SREM', subscriber_topics_key(token), name)
end
redis.call('DEL', topic_subscribers_key(name), topic_key(name))
redis.call('SREM', topics_key(), name)
return 1
