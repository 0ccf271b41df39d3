-- Drops the oldest batches with all that points to them, except those in flight. Takes no memory.
--
-- ARGV     1 namespace, 2 max batches to drop, 3 number of events after which no more are dropped
-- Returns  {subscriber, events, ...}, two values for each batch, oldest first; empty when nothing
--          is left
-- Keeps    a batch goes with its job, its index entry, its gauges and its place in the lane. A job
--          deep inside the instant queue stays, since it takes long to find, and goes when it comes
--          up
local max_batches, max_events = tonumber(ARGV[2]), tonumber(ARGV[3])
local max_in_flight = noted_max_in_flight()

local held, holding = {}, 0
for _, worker in ipairs(redis.call('SMEMBERS', pending_index_key('main'))) do
  for _, job in ipairs(redis.call('LRANGE', pending_key('main', worker), 0, -1)) do
    held[job] = true
    holding = holding + 1
  end
end

allow_when_full()
local dropped, events = {}, 0
for _, bid in ipairs(redis.call('ZRANGE', batches_index_key(), 0, max_batches + holding - 1)) do
  if #dropped >= 2 * max_batches or events >= max_events then break end
  if not held[job_of(bid)] then
    originals().adopt(bid) -- also what the Ruby original has left is dropped in its turn
    local header = redis.pcall('LRANGE', batch_key(bid), 0, HEADER - 1) -- a table in any case
    local token, length = header[1], 0
    if token then
      token = holder_of(token)
      length = events_of(bid)
      remove_batch(bid, token, length, max_in_flight, header[3] ~= '0', true)
    else -- an entry for what is not there
      token = ''
      redis.call('ZREM', batches_index_key(), bid)
    end
    remove_batch_job(bid)
    table.insert(dropped, token)
    table.insert(dropped, length)
    events = events + length
  end
end
return dropped
