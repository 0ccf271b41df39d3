-- Adds up some of a subscriber's batches, and compares its gauges with the sum. The caller names the batches it
-- knows; the newest of all, and the current one, the script finds itself.
--
-- ARGV     1 namespace, 2 '1' to fix it, 3 token, 4 created since (ms): where to look for new ones, '' for nowhere,
--          5 batches and 6 events added up before; 7 and 8 the gauges, of batches and of events, as they were read
--          when 9 and 10 were the sums: any other difference shows that something is under way, and nothing is
--          fixed; 11.. batches
-- Returns  {batches, events, gauge of batches, gauge of events, {batches it found itself}, 1 if it was fixed}
local NEWEST = 200 -- bounds one call
local token = ARGV[3]
local batches, events = tonumber(ARGV[5]), tonumber(ARGV[6])
local known, own = {}, {}

local function add(bid)
  if known[bid] then return false end
  known[bid] = true
  local label = redis.pcall('LINDEX', batch_key(bid), 0)
  if type(label) ~= 'string' or holder_of(label) ~= token or not is_batch(bid) then return false end
  batches = batches + 1
  events = events + math.max(0, redis.call('LLEN', batch_key(bid)) - HEADER)
  return true
end

for i = 11, #ARGV do add(ARGV[i]) end
if ARGV[4] ~= '' then
  for _, bid in ipairs(redis.call('SMEMBERS', current_key(token))) do
    if add(bid) then table.insert(own, bid) end
  end
  for _, bid in ipairs(redis.call('ZREVRANGEBYSCORE', batches_index_key(), '+inf', ARGV[4], 'LIMIT', 0, NEWEST)) do
    if add(bid) then table.insert(own, bid) end
  end
end

local function gauge(key) return redis.call('HGET', key, token) or '' end

-- A gauge that Lua can calculate with; nil for one that is no number, or too large.
local function number(value)
  if value == '' or value == '0' then return 0 end
  if #value <= 15 and string.match(value, '^%-?[1-9]%d*$') then return tonumber(value) end
  return nil
end

-- Whether a gauge differs from its sum by as much as it did.
local function differs_as(value, sum, read, summed)
  if value == read then return sum == summed end
  local now, before = number(value), number(read)
  if not now or not before then return false end
  return now - sum == before - summed
end

local function set(key, n)
  if n > 0 then
    redis.call('HSET', key, token, n)
  else
    redis.call('HDEL', key, token)
  end
end

local of_batches, of_events, fixed = gauge(batch_gauge_key()), gauge(event_gauge_key()), 0
if fix and differs_as(of_batches, batches, ARGV[7], tonumber(ARGV[9]))
  and differs_as(of_events, events, ARGV[8], tonumber(ARGV[10])) then
  set(batch_gauge_key(), batches)
  set(event_gauge_key(), events)
  fixed = 1
end
return { batches, events, of_batches, of_events, own, fixed }
