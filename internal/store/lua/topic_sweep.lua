-- Removes topics that have had neither publisher, subscriber, relay nor event for long, and
-- leftovers of topics that are gone.
--
-- ARGV     1 namespace, 2 now (ms), 3 latest time at which a topic to be removed was first seen
--          unused (ms), 4.. topics
-- Returns  how many topics were removed
-- Keeps    a topic with a key that is not of its type
allow_when_full()
local now, latest = ARGV[2], tonumber(ARGV[3])

-- Whether a topic has nothing; false when that cannot be told.
local function is_unused(topic)
  local fields = redis.pcall('HMGET', topic_key(topic), 'publisher', 'counter')
  if fields.err or (fields[1] and fields[1] ~= '') then return false end
  if (tonumber(fields[2]) or 0) > 0 then return false end
  if KEYS[1] and redis.call('EXISTS', outboxes_key(topic)) == 1 then return false end
  return redis.call('EXISTS', topic_subscribers_key(topic)) == 0
end

local removed = 0
for i = 4, #ARGV do
  local topic = ARGV[i]
  local since = redis.call('HGET', unused_key(), topic)
  if redis.call('SISMEMBER', topics_key(), topic) == 0 then
    owners().clear(topic)
    if since then redis.call('HDEL', unused_key(), topic) end
  elseif not is_unused(topic) then
    if since then redis.call('HDEL', unused_key(), topic) end
  elseif not since then
    redis.call('HSET', unused_key(), topic, now)
  elseif (tonumber(since) or 0) <= latest then
    remove_topic(topic)
    removed = removed + 1
  end
end
return removed
