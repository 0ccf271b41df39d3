-- Has the events of topics be relayed to another partition, which has a subscriber of them.
--
-- ARGV     1 namespace, 2 number of the partition, 3 name of the subscriber's client, 4.. topics
-- Returns  {1}
-- Keeps    the topics; their generations for the partition grow with each subscription
local number, name = ARGV[2], ARGV[3]
for i = 4, #ARGV do
  local topic = ARGV[i]
  if redis.call('SADD', topics_key(), topic) == 1 then owners().set(topic, name) end
  redis.call('HINCRBY', outboxes_key(topic), number, 1)
end
return { 1 }
