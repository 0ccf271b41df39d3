-- Adds a counter to another, which takes its place.
--
-- ARGV     1 namespace, 2 counter (packed), 3 counter that takes its place (packed)
-- Returns  1, or 0 when it is not there
local value = redis.call('HGET', counters_key(), ARGV[2])
if not value then return 0 end
redis.call('HINCRBY', counters_key(), ARGV[3], value)
redis.call('HDEL', counters_key(), ARGV[2])
return 1
