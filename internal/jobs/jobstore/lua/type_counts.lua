-- Counts the jobs of types that have not ended.
--
-- ARGV     1 namespace, 2.. types
-- Returns  a list of {queued, of these waiting for their turn, in progress, sequence of the oldest
--          (µs, text, '' if there is none)}
local counts = {}
for i = 2, #ARGV do
  local name = ARGV[i]
  local type = read_type(name)
  if type then
    local in_progress = in_flight_of(type.lane)
    local turns = math.max(type.max, in_progress)
    if type.pull then turns = in_progress end -- who fetches decides when
    local standing = redis.call('ZCARD', type.lane)
    local oldest = redis.call('ZRANGE', open_key(name), 0, 0, 'WITHSCORES')
    counts[i - 1] = {
      redis.call('ZCARD', open_key(name)) - in_progress, math.max(standing - turns, 0), in_progress,
      oldest[2] and exact(tonumber(oldest[2])) or '',
    }
  else
    counts[i - 1] = { 0, 0, 0, '' }
  end
end
return counts
