-- Makes topics what they are where the bus was, but for the events in their histories. No publish
-- may come meanwhile.
--
-- ARGV     1 namespace, 2.. of each topic its name, its publisher's token, its counter, its last
--          event, the name of the client that it belongs to, the position that its history begins
--          at, which is the next, and the history's limits: events, age (ms) and bytes; empty for
--          none
-- Returns  {1}
-- Keeps    how many topics each client has
local function set(topic, field, value)
  if value == '' then
    redis.call('HDEL', topic_key(topic), field)
  else
    redis.call('HSET', topic_key(topic), field, value)
  end
end
local function begin_history(topic, first, limits)
  remove_history(topic)
  if first == '' then return end
  local key = history_limits_key(topic)
  redis.call('HSET', plans_key(), history_field(topic), 1)
  redis.call('DEL', key, history_key(topic))
  redis.call('HSET', key, 'first', first, 'size', 0, 'last', 0)
  for name, limit in pairs(limits) do
    if limit ~= '' then redis.call('HSET', key, name, limit) end
  end
end
for i = 2, #ARGV, 9 do
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
  begin_history(topic, ARGV[i + 5],
    { events = ARGV[i + 6], age = ARGV[i + 7], bytes = ARGV[i + 8] })
end
return { 1 }
