-- Notes the head of an outbox, which was taken, once more, so that replicas confirm that.
--
-- ARGV     1 namespace, 2 number of the partition it is for, 3 UID of the relay
-- Returns  {1}; {0, 'changed'} if what is taken is another one, or nothing
allow_when_full()
local taken = redis.call('HGET', relay_taken_key(), ARGV[2])
if not taken or string.match(taken, '^%S+') ~= ARGV[3] then return { 0, 'changed' } end
redis.call('HSET', relay_taken_key(), ARGV[2], taken)
return { 1 }
