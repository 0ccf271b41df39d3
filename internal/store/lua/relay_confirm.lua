-- Writes the record of an outbox's taken head again, so that replicas confirm it.
--
-- ARGV     1 namespace, 2 number of the target partition, 3 UID of the relay
-- Returns  {1}; {0, 'changed'} if another head is taken, or none
allow_when_full()
local taken = redis.call('HGET', relay_taken_key(), ARGV[2])
if not taken or string.match(taken, '^%S+') ~= ARGV[3] then return { 0, 'changed' } end
redis.call('HSET', relay_taken_key(), ARGV[2], taken)
return { 1 }
