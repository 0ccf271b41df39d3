-- Ends a subscriber's pause, if it is paused. Its next batches come up at once.
--
-- ARGV     1 namespace, 2 token
-- Returns  {1}; {0, 'not subscribed'}
local token = holder_of(ARGV[2])
if redis.call('SISMEMBER', subscribers_key(), token) == 0 then return { 0, 'not subscribed' } end
if redis.call('HDEL', delivery_key(token), 'paused_until') == 1 then wake_subscriber(token) end
return { 1 }
