-- Has the deliveries to a subscriber begin where the bus has moved to: nothing is left for it where
-- the bus was. If its client has paused it, it stays so. One that is not held is left as it is.
--
-- ARGV     1 namespace, 2 token, 3.. as 4.. of subscriber_hold.lua, without the secrets
-- Returns  {1}; also when it is not held: that may still have to be confirmed
local token = ARGV[2]
local paused_until = redis.call('HGET', plans_key(), held_field(token))
if not paused_until then return { 1 } end
redis.call('HDEL', plans_key(), held_field(token))
if redis.call('SISMEMBER', subscribers_key(), token) == 0 then return { 1 } end
put_record(token, ARGV[3], ARGV[4], ARGV[5])
if paused_until == '0' or paused_until == '' then
  redis.call('HDEL', delivery_key(token), 'paused_until')
else
  redis.call('HSET', delivery_key(token), 'paused_until', paused_until)
end
wake_subscriber(token)
return { 1 }
