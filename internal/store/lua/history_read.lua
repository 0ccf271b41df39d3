-- Reads a part of a topic's history.
--
-- ARGV     1 namespace, 2 topic, 3 position to begin at, 4 max entries, 5 number of bytes after
--          which no more are read
-- Returns  {first, last, the position of the first entry read, the entries}; {'topic unknown'};
--          {'no history'}
local position, max_entries, max_bytes = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
if redis.call('SISMEMBER', topics_key(), ARGV[2]) == 0 then return { 'topic unknown' } end
local first, last = history_bounds(ARGV[2])
if not first then return { 'no history' } end
position = math.max(position, first)
local entries, bytes, WINDOW = {}, 0, 100
while #entries < max_entries and bytes < max_bytes and position + #entries <= last do
  local from = position + #entries - first
  local to = from + math.min(WINDOW, max_entries - #entries) - 1
  for _, entry in ipairs(redis.call('LRANGE', history_key(ARGV[2]), from, to)) do
    table.insert(entries, entry)
    bytes = bytes + #entry
  end
end
return { first, last, position, entries }
