-- Notes where the subscriptions of a client to topics are about to start, in the outbox from their
-- home: what is before that is not for them. Those that it has already start where they did.
--
-- ARGV     1 namespace, 2 token, 3 what the home counts by, 4 where they start, both as
--          outbox_ends has them, 5 TTL of what is noted (ms), 6.. topics
-- Returns  {1}
local token = holder_of(ARGV[2])
for i = 6, #ARGV do
  if redis.call('SISMEMBER', topic_subscribers_key(ARGV[i]), token) == 0 then
    redis.call('HSET', relay_starts_key(), ARGV[i] .. ' ' .. token, ARGV[3] .. ' ' .. ARGV[4])
    redis.call('PEXPIRE', relay_starts_key(), ARGV[5])
  end
end
return { 1 }
