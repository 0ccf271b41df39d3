-- Stops relaying a topic's events to another partition, unless a client there has subscribed since
-- the generation was read. Events in the outbox are still relayed.
--
-- ARGV     1 namespace, 2 topic, 3 number of the partition, 4 generation
-- Returns  {1}; {0, 'changed'} if the generation is another one
allow_when_full()
local current = redis.call('HGET', outboxes_key(ARGV[2]), ARGV[3])
if not current then return { 1 } end
if current ~= ARGV[4] then return { 0, 'changed' } end
redis.call('HDEL', outboxes_key(ARGV[2]), ARGV[3])
return { 1 }
