-- Makes topics what they are where the bus was. No publish may come meanwhile.
--
-- ARGV     1 namespace, 2.. of each topic its name, its publisher's token, its counter, its last
--          event, and the name of the client that it belongs to; empty for none
-- Returns  {1}
-- Keeps    how many topics each client has
local function set(topic, field, value)
  if value == '' then
    redis.call('HDEL', topic_key(topic), field)
  else
    redis.call('HSET', topic_key(topic), field, value)
  end
end
for i = 2, #ARGV, 5 do
  local topic, owner = ARGV[i], ARGV[i + 4]
  redis.call('SADD', topics_key(), topic)
  set(topic, 'publisher', ARGV[i + 1])
  set(topic, 'counter', ARGV[i + 2])
  set(topic, 'last_event', ARGV[i + 3])
  if owner == '' then
    owners().clear(topic)
  else
    owners().set(topic, owner)
  end
end
return { 1 }
