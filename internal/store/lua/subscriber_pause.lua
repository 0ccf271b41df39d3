-- Pauses the deliveries to a subscriber.
--
-- ARGV     1 namespace, 2 token, 3 until (ms)
-- Returns  {1}; {0, 'not subscribed'}
local token = holder_of(ARGV[2])
if redis.call('SISMEMBER', subscribers_key(), token) == 0 then return { 0, 'not subscribed' } end
local waited = redis.call('HGET', delivery_key(token), 'paused_until')
redis.call('HSET', delivery_key(token), 'paused_until', ARGV[3])
if waited then wake_subscriber(token) end -- batches that wait for the end of another pause
return { 1 }
