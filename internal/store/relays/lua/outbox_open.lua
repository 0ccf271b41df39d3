-- Has the events of topics be relayed to another partition, which has a subscriber of them.
--
-- ARGV     1 namespace, 2 number of the partition, 3 name of the subscriber's client, 4.. topics
-- Returns  {1}
-- Keeps    the topics; generations grow with each subscription, and are never used again
local number, name = ARGV[2], ARGV[3]
for i = 4, #ARGV do
  local topic = ARGV[i]
  if redis.call('SADD', topics_key(), topic) == 1 then owners().set(topic, name) end
  redis.call('HSET', outboxes_key(topic), number, redis.call('INCR', relay_generation_key()))
end
return { 1 }
