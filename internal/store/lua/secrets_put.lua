-- Replaces a subscriber's signing secrets, unless they have changed since they were read. If its
-- deliveries fail, the bus tries it at once.
--
-- ARGV     1 namespace, 2 token, 3 its secrets as they were read (JSON, empty if it had none),
--          4 its new secrets (likewise), 5 the version of the options with them
-- Returns  {1}; {0, 'not subscribed'}; {0, 'changed'}
-- Keeps    another version of the options with every change
local token = holder_of(ARGV[2])
if redis.call('SISMEMBER', subscribers_key(), token) == 0 then return { 0, 'not subscribed' } end
if (redis.call('HGET', options_key(token), 'secrets') or '') ~= ARGV[3] then
  return { 0, 'changed' }
end
redis.call('HLEN', delivery_key(token)) -- fails, before anything is written, if it is no hash
if ARGV[4] == '' then
  redis.call('HDEL', options_key(token), 'secrets')
else
  redis.call('HSET', options_key(token), 'secrets', ARGV[4])
end
renew_options_version(token, ARGV[5])
try_subscriber(token)
return { 1 }
