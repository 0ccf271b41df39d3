-- Records where subscriptions of a client to topics are about to start, in the outbox from their
-- home: events before that are not for them. Existing subscriptions keep their start.
--
-- ARGV     1 namespace, 2 token, 3 identity of the home's count, 4 where they start, both from
--          outbox_ends, 5 TTL of the record (ms), 6.. topics
-- Returns  {1}
local token = holder_of(ARGV[2])
for i = 6, #ARGV do
  if redis.call('SISMEMBER', topic_subscribers_key(ARGV[i]), token) == 0 then
    redis.call('HSET', relay_starts_key(), ARGV[i] .. ' ' .. token, ARGV[3] .. ' ' .. ARGV[4])
    redis.call('PEXPIRE', relay_starts_key(), ARGV[5])
  end
end
return { 1 }
