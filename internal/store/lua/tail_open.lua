-- Sends a topic's publishes to a channel.
--
-- ARGV     1 namespace, 2 topic, 3 UID of the channel, unless the topic has another
-- Returns  {1, UID of the topic's channel}; {0, 'topic unknown'}
if redis.call('SISMEMBER', topics_key(), ARGV[2]) == 0 then return { 0, 'topic unknown' } end
if redis.call('HSETNX', plans_key(), tail_field(ARGV[2]), ARGV[3]) == 1 then
  return { 1, ARGV[3] }
end
return { 1, redis.call('HGET', plans_key(), tail_field(ARGV[2])) }
