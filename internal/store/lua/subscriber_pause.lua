-- Pauses the deliveries to a subscriber.
--
-- ARGV     1 namespace, 2 token, 3 until (ms)
-- Returns  {1}; {0, 'not subscribed'}
local token = holder_of(ARGV[2])
if redis.call('SISMEMBER', subscribers_key(), token) == 0 then return { 0, 'not subscribed' } end
redis.call('HSET', delivery_key(token), 'paused_until', ARGV[3])
return { 1 }
