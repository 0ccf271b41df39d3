-- Lets the bus try a subscriber whose deliveries fail at once, as when it subscribes again.
--
-- ARGV     1 namespace, 2 token
-- Returns  {1}, also if nothing holds its deliveries up; {0, 'not subscribed'}
local token = holder_of(ARGV[2])
if redis.call('SISMEMBER', subscribers_key(), token) == 0 then return { 0, 'not subscribed' } end
redis.call('HLEN', delivery_key(token)) -- fails, before anything is written, if it is no hash
try_subscriber(token)
return { 1 }
