-- Drops the oldest batches with all that points to them, except those in flight, and gap notices
-- that wait: a notice of their loss would only take their place. Takes no memory but for notices.
--
-- ARGV     1 namespace, 2 max batches to drop, 3 number of events after which no more are dropped,
--          4 now (ms), 5 first 16 characters of the UIDs of gap notices
-- Returns  {subscriber, events, ...}, two values for each batch, oldest first; empty when nothing
--          is left. What a gap notice tells was lost before, so it has no events
-- Keeps    a batch goes with its job, its index entry, its gauges and its place in the lane. A job
--          deep inside the instant queue stays, since it takes long to find, and goes when it comes
--          up
local max_batches, max_events = tonumber(ARGV[2]), tonumber(ARGV[3])
local max_in_flight, held = noted_max_in_flight(), jobs_in_flight('main')
local notices = gaps()

allow_when_full()
local dropping, dropped, events = {}, {}, 0

-- Chooses a batch, unless it stays.
local function choose(bid)
  if held[job_of(bid)] then return end
  originals().adopt(bid) -- also what the Ruby original has left is dropped in its turn
  local header = redis.pcall('LRANGE', batch_key(bid), 0, HEADER - 1) -- a table in any case
  local token, length, lost = '', 0, 0
  if header[1] then
    token, length = holder_of(header[1]), events_of(bid)
    if length == 1 and notices.waiting(token) == bid then return end
    lost = notices.count(token, batch_key(bid), length)
  end
  events = events + length
  table.insert(dropping, { bid, token, length, header[3] })
  table.insert(dropped, token)
  table.insert(dropped, lost)
end

local offset = 0
while #dropping < max_batches and events < max_events do
  local oldest = redis.call('ZRANGE', batches_index_key(), offset, offset + max_batches - 1)
  if not oldest[1] then break end
  for _, bid in ipairs(oldest) do
    if #dropping >= max_batches or events >= max_events then break end
    choose(bid)
  end
  offset = offset + #oldest -- more than once only for what stays, which is little
end
-- Before the batches are removed, which wakes the heads of their lanes: the notices belong there.
notices.note_counted(ARGV[4], ARGV[5], 'autodrop')
for _, batch in ipairs(dropping) do
  local bid, token, length, attempts = unpack(batch)
  if token ~= '' then
    remove_batch(bid, token, length, max_in_flight, attempts ~= '0', true)
  else -- an entry for what is not there
    redis.call('ZREM', batches_index_key(), bid)
  end
  remove_batch_job(bid)
end
return dropped
