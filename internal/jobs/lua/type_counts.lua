-- Counts the jobs of types that have not ended.
--
-- ARGV     1 namespace, 2.. types
-- Returns  a list of {queued, of these waiting for their turn, in progress, since when the first of
--          those that are due could be done (µs, text, '' if there is none), until when its service
--          asked for time (µs, text, '0' if it did not)}, zeros of a type that is not there, or
--          damaged
local function counts_of(name)
  local type = read_type(name)
  if not type then error('no such type') end
  local in_progress = in_flight_of(type.lane)
  local turns = math.max(type.max, in_progress)
  if type.pull then turns = in_progress end -- the fetching service decides when
  local standing = redis.call('ZCARD', type.lane)
  local first = redis.call('ZRANGEBYSCORE', type.lane, '(0', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  local oldest = tonumber(first[2])
  if oldest then -- it could be done since then, or since it was due
    local _, id = unpack_job(first[1])
    oldest = math.max(oldest, tonumber(redis.call('HGET', job_key(id), 'run_after')) or 0)
  end
  return {
    redis.call('ZCARD', open_jobs_key(name)) - in_progress, math.max(standing - turns, 0),
    in_progress, oldest and exact(oldest) or '', exact(type.held_until),
  }
end

local counts = {}
for i = 2, #ARGV do
  local ok, of_type = pcall(counts_of, ARGV[i])
  counts[i - 1] = ok and of_type or { 0, 0, 0, '', '0' }
end
return counts
