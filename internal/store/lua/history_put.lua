-- Starts a history of a topic with the next event, or changes the limits of an existing one.
--
-- ARGV     1 namespace, 2 topic, 3 caller's token, empty for root, 4 now (ms), 5 events, 6 age
--          (ms) and 7 bytes to keep at most, empty for no limit
-- Returns  {1}; {0, 'topic unknown'}; {0, 'topic claimed'} when it is another client's
-- Keeps    entries within the limits; removes some of the entries beyond them
local topic, limits = ARGV[2], { events = ARGV[5], age = ARGV[6], bytes = ARGV[7] }
if redis.call('SISMEMBER', topics_key(), topic) == 0 then return { 0, 'topic unknown' } end
if not may_manage(topic, ARGV[3]) then return { 0, 'topic claimed' } end
local key, is_new = history_limits_key(topic), not histories().find(topic)
local counter = tonumber(redis.call('HGET', topic_key(topic), 'counter')) or 0
redis.call('HSET', plans_key(), history_field(topic), 1)
if is_new then
  redis.call('DEL', key, history_key(topic))
  redis.call('HSET', key, 'first', string.format('%.0f', counter + 1), 'size', 0, 'last', 0)
end
for name, limit in pairs(limits) do
  if limit == '' then
    redis.call('HDEL', key, name)
  else
    redis.call('HSET', key, name, limit)
  end
end
histories().trim(histories().find(topic), tonumber(ARGV[4]))
return { 1 }
