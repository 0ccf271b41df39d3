-- Ends the deletion of a topic: removes it, if asked to and if no client in another partition has
-- subscribed since the deletion began.
--
-- ARGV     1 namespace, 2 topic, 3 UID of the deletion, 4 '1' to remove the topic, 5.. as they were
--          when it began: number of a partition to which it was relayed, generation
-- Returns  {1}; {0, 'changed'} when a client has subscribed, or another deletion has taken over
allow_when_full()
local topic = ARGV[2]
if redis.call('GET', deleting_key(topic)) ~= ARGV[3] then return { 0, 'changed' } end
redis.call('DEL', deleting_key(topic))
if ARGV[4] ~= '1' then return { 1 } end
local before = {}
for i = 5, #ARGV, 2 do before[ARGV[i]] = ARGV[i + 1] end
local relayed = redis.call('HGETALL', outboxes_key(topic))
for i = 1, #relayed, 2 do
  if before[relayed[i]] ~= relayed[i + 1] then return { 0, 'changed' } end
end
redis.call('DEL', outboxes_key(topic))
remove_topic(topic)
return { 1 }
