-- Gives a subscriber the signing secrets that it has where the bus has moved to.
--
-- ARGV     1 namespace, 2 token, 3 the secrets (JSON, empty for none), 4 the version of the plan
--          that has them
-- Returns  {1}; {0, 'not subscribed'}
if redis.call('SISMEMBER', subscribers_key(), ARGV[2]) == 0 then return { 0, 'not subscribed' } end
put_secrets(ARGV[2], ARGV[3], ARGV[4])
try_subscriber(ARGV[2])
return { 1 }
