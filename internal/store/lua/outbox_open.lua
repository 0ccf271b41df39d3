-- Starts relaying the events of topics, of which this is the home, to another partition, which has
-- a subscriber of them.
--
-- ARGV     1 namespace, 2 number of the partition, empty if the subscriber is here, 3 name of its
--          client, 4.. topics
-- Returns  {1}
-- Keeps    the topics; generations grow with each subscription, and are never used again
local number, name = ARGV[2], ARGV[3]
for i = 4, #ARGV do
  local topic = ARGV[i]
  redis.call('SADD', topics_key(), topic)
  if redis.call('HEXISTS', owners_key(), topic) == 0 then owners().set(topic, name) end
  if number ~= '' then
    redis.call('HSET', outboxes_key(topic), number, redis.call('INCR', relay_generation_key()))
  end
end
return { 1 }
