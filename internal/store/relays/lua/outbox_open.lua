-- Has the events of a topic be relayed to another partition, which has a subscriber of it.
--
-- ARGV     1 namespace, 2 topic, 3 number of the partition, 4 name of the subscriber's client, 5
--          max topics of a client, 6 max topics of the bus
-- Returns  {1}; {0, "client's topics"} or {0, "bus's topics"} when the topic would be one too many
-- Keeps    the topic; its generation for the partition grows with each subscription
local topic, name = ARGV[2], ARGV[4]
if redis.call('SISMEMBER', topics_key(), topic) == 0 then
  local more = redis.call('HGET', owners_key(), topic) ~= name and 1 or 0
  local refused = owners().over_limit(name, more, 1, tonumber(ARGV[5]), tonumber(ARGV[6]))
  if refused then return { 0, refused } end
  redis.call('SADD', topics_key(), topic)
  owners().set(topic, name)
end
redis.call('HINCRBY', outboxes_key(topic), ARGV[3], 1)
return { 1 }
