-- Gives a subscriber what no subscription says, as it is where the bus has moved to, and has it be
-- tried at once.
--
-- ARGV     1 namespace, 2 token, 3 the signing secrets (JSON, empty for none), 4 the version of the
--          plan that has them, 5.. see put_fields
-- Returns  {1}; {0, 'not subscribed'}
if redis.call('SISMEMBER', subscribers_key(), ARGV[2]) == 0 then return { 0, 'not subscribed' } end
put_secrets(ARGV[2], ARGV[3], ARGV[4])
put_fields(ARGV[2], 5)
try_subscriber(ARGV[2])
return { 1 }
