-- Drops batches that a subscriber's options do not let it keep: batches older than `keep_age`, and
-- the oldest while it has more than `keep_events`. Of the last one only as many events go as
-- needed. Batches in flight stay, and so do gap notices, which do not count as events.
--
-- The script looks where batches wait: in the subscriber's lanes, among the failed ones, and among
-- the current ones. Each of these is roughly in the order of creation, so it is enough to look at
-- the beginning, however many batches others have. A batch that no worker has seen yet is found
-- later.
--
-- ARGV     1 namespace, 2 token, 3 now (ms), 4 first 16 characters of the UID of a gap notice,
--          5 max batches to drop, 6 number of events after which no more are dropped
-- Returns  the number of batches dropped, and the number of events lost; there may be more to drop
--          unless no batch was dropped
-- Keeps    a batch is removed with its job, its index entry, its gauges and its place in the lane.
--          A job deep inside the instant queue stays, and is removed when it comes up
local token, now = ARGV[2], tonumber(ARGV[3])
local max_batches, max_events = tonumber(ARGV[5]), tonumber(ARGV[6])
local options = redis.call('HMGET', options_key(token), 'keep_age', 'keep_events')
local keep_age, keep_events = tonumber(options[1]), tonumber(options[2])

local notices = gaps()
local queued, is_notice = notices.queued(token), {}
for _, bid in ipairs(queued) do is_notice[bid] = true end

-- By how many events the subscriber has too many.
local too_many = 0
if keep_events then
  too_many = (tonumber(redis.pcall('HGET', event_gauge_key(), token)) or 0)
    - #queued - keep_events
end

local function is_old(batch) return keep_age and now - batch.created > keep_age end

local found, places, horizon = {}, 0, math.huge

-- Adds batches where they wait. If these fill the window, they may be only the beginning: nothing
-- newer is dropped then.
local function add(bids, window)
  local created
  for _, bid in ipairs(bids) do
    local header = redis.pcall('LRANGE', batch_key(bid), 0, HEADER - 1) -- a table in any case
    created = tonumber(header[2])
    if created and header[3] and not found[bid] then
      places = places + 1
      found[bid] = { bid = bid, created = created, place = places, header = header }
    end
  end
  if #bids >= window and created then horizon = math.min(horizon, created) end
end

local function add_lane(lane, window)
  local bids = {}
  for _, job in ipairs(redis.call('ZRANGE', lane, 0, window - 1)) do
    table.insert(bids, batch_of('main', job))
  end
  add(bids, window)
end

local MIN_WINDOW = 5 -- batches of one lane, if there are many lanes
add(redis.call('ZRANGE', failed_key(token), 0, max_batches - 1), max_batches)
local lanes = subscriber_lanes()
local count = lanes.count(token)
local window = math.max(MIN_WINDOW, math.ceil(max_batches / count))
for lane = 0, count - 1 do add_lane(lane_of_subscriber(token, lane), window) end
add(lanes.current_batches(token), math.huge)
local oldest = {}
for _, batch in pairs(found) do
  if batch.created <= horizon then table.insert(oldest, batch) end
end
table.sort(oldest, function(a, b)
  return a.created < b.created or (a.created == b.created and a.place < b.place)
end)

local max_in_flight, held = noted_max_in_flight(), nil

-- Removes the first events of a batch that keeps others.
local function cut(batch)
  local bytes = event_bytes_of(batch.bid, batch.going - 1)
  redis.call('LTRIM', batch_key(batch.bid), HEADER + batch.going, -1)
  redis.call('LPUSH', batch_key(batch.bid), batch.header[3], batch.header[2], batch.header[1])
  change_gauge(event_gauge_key(), token, -batch.going)
  change_gauge(bytes_gauge_key(), token, exact(-bytes))
  note_changed(batch.bid, batch.header[3])
end

allow_when_full()
local dropping, events, lost = {}, 0, 0
for _, batch in ipairs(oldest) do
  if not is_old(batch) and too_many <= 0 then break end
  if #dropping >= max_batches or events >= max_events then break end
  held = held or jobs_in_flight('main')
  if not held[job_of(batch.bid)] and not is_notice[batch.bid] then
    batch.length = events_of(batch.bid)
    batch.going = batch.length
    if not is_old(batch) then batch.going = math.min(batch.length, too_many) end
    lost = lost + notices.count(token, batch_key(batch.bid), batch.going)
    too_many, events = too_many - batch.going, events + batch.going
    table.insert(dropping, batch)
  end
end
-- Before the batches are removed, which wakes the head of the lane: the notice belongs there.
notices.note_counted(now, ARGV[4], 'retention')
for _, batch in ipairs(dropping) do
  if batch.going < batch.length then
    cut(batch)
  else
    local failed = batch.header[3] ~= '0'
    remove_batch(batch.bid, token, batch.length, max_in_flight, failed, true)
    remove_batch_job(batch.bid)
  end
end
return { #dropping, lost }
