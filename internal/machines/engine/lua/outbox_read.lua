-- Reads the oldest moves of a machine that are to be published. The slice stays the same until it
-- is removed, so that publishing it once more publishes nothing else.
--
-- ARGV     1 namespace, 2 machine, 3 how many at most
-- Returns  {number of the first move, moves as tell writes them, ...}
local length = redis.call('LLEN', machine_outbox_key(ARGV[2]))
local found = redis.call('HMGET', machine_published_key(ARGV[2]), 'count', 'last')
local first = (tonumber(found[1]) or 0) - length + 1
local last = tonumber(found[2]) or 0
if length > 0 and last < first then
  last = first + math.min(length, tonumber(ARGV[3])) - 1
  redis.call('HSET', machine_published_key(ARGV[2]), 'last', exact(last))
end
local reply = { first }
for i, text in ipairs(redis.call('LRANGE', machine_outbox_key(ARGV[2]), 0, last - first)) do
  reply[i + 1] = text
end
return reply
