-- Reads, at one moment, the record of a topic's history, and the size of a part of it.
--
-- ARGV     1 namespace, 2 topic, 3 position at which the part begins, unless the oldest entry is
--          later, 4 number of bytes after which it ends
-- Returns  {first, size, the topic's counter, '' for a missing value, number of entries, the
--          positions of the part's first entry and behind its last, its bytes}; {} if a key has
--          the wrong type
local topic, max_bytes, WINDOW = ARGV[2], tonumber(ARGV[4]), 100
local noted = redis.pcall('HMGET', history_limits_key(topic), 'first', 'size')
local counter = redis.pcall('HGET', topic_key(topic), 'counter')
local length = redis.pcall('LLEN', history_key(topic))
if noted.err or type(counter) == 'table' or type(length) == 'table' then return {} end
local first, bytes = tonumber(noted[1]) or 0, 0
local from = math.max(first, tonumber(ARGV[3]))
local to = from
while to < first + length and bytes < max_bytes do
  local window = redis.call('LRANGE', history_key(topic), to - first, to - first + WINDOW - 1)
  for _, entry in ipairs(window) do bytes = bytes + #entry end
  to = to + #window
end
return { noted[1] or '', noted[2] or '', counter or '', length, from, to, bytes }
