-- Holds a subscriber where the bus moves to, and gives it what no subscription says.
--
-- ARGV     1 namespace, 2 token, 3 until when its client has paused it (ms), 0 if it has not,
--          4 events sent, 5 health points and 6 when a delivery was last tried (ms), empty for
--          nothing, 7 its signing secrets (JSON, empty for none), 8 the version of the plan that
--          has them, 9.. see put_fields
-- Returns  {1}; {0, 'not subscribed'}
local token = ARGV[2]
if redis.call('SISMEMBER', subscribers_key(), token) == 0 then return { 0, 'not subscribed' } end
put_secrets(token, ARGV[7], ARGV[8])
put_fields(token, 9)
put_record(token, ARGV[4], ARGV[5], ARGV[6])
redis.call('HSET', plans_key(), held_field(token), ARGV[3])
keep_held(token)
return { 1 }
