-- Stops sending a topic's publishes to its channel, unless another process listens there. The check
-- publishes an empty message, which listeners ignore.
--
-- ARGV     1 namespace, 2 topic, 3 UID of the channel
-- Returns  {1}
local field = tail_field(ARGV[2])
if redis.call('HGET', plans_key(), field) == ARGV[3]
  and redis.call('PUBLISH', tail_channel(ARGV[3]), '') == 0 then
  redis.call('HDEL', plans_key(), field)
end
return { 1 }
