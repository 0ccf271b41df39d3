-- Drops the oldest batches of some subscribers with all keys and entries that refer to them.
-- Batches in flight stay, and so do waiting gap notices: a notice of their loss would only replace
-- them. Allocates no memory but for notices.
--
-- ARGV     namespace; dropArgs of memory.go; then tokens of the subscribers; none for all
-- Returns  {1 at the end of the index, else 0; the UID and the time for the next call; subscriber,
--          events, ...}, two values for each batch, oldest first. The events that a gap notice
--          reports were lost before, so it counts none
-- Keeps    a batch is removed with its job, its index entry, its gauges and its place in the lane.
--          A job deep inside the instant queue stays, since it takes long to find, and is removed
--          when it comes up
local max_batches, max_events, now, seed, last, last_created, max_looks, former =
  unpack(ARGV, 2, 9)
max_batches, max_events, max_looks =
  tonumber(max_batches), tonumber(max_events), tonumber(max_looks)
local max_in_flight, held = noted_max_in_flight(), jobs_in_flight('main')
local notices, chosen, of_all = gaps(), {}, #ARGV < 10
for i = 10, #ARGV do
  if former ~= '1' then
    chosen[ARGV[i]] = true
  elseif redis.call('SISMEMBER', subscribers_key(), holder_of(ARGV[i])) == 0 then
    chosen[holder_of(ARGV[i])] = true
  end
end

allow_when_full()
local dropping, dropped, events = {}, { 1, '', '' }, 0

-- The token of a batch's subscriber, also if the batch is at the Ruby original's key; '' if the
-- index entry has no batch.
local function subscriber_of_batch(bid)
  for _, key in ipairs({ batch_key(bid), original_key(bid) }) do
    local token = redis.pcall('LRANGE', key, 0, 0)[1] -- a table in any case
    if token then return holder_of(token) end
  end
  return ''
end

-- Chooses a batch, unless it stays. Returns whether it goes.
local function choose(bid)
  local token = subscriber_of_batch(bid)
  if not (of_all or chosen[token]) or held[job_of(bid)] then return false end
  originals().adopt(bid) -- a batch of the Ruby original is dropped in its turn, too
  local header = redis.pcall('LRANGE', batch_key(bid), 0, HEADER - 1)
  local length, lost = 0, 0
  if header[1] then
    length = events_of(bid)
    if length == 1 and notices.waiting(token) == bid then return false end
    lost = notices.count(token, batch_key(bid), length)
  else
    token = ''
  end
  events = events + length
  table.insert(dropping, { bid, token, length, header[3] })
  table.insert(dropped, token)
  table.insert(dropped, lost)
  return true
end

-- Where to go on: behind the last batch or, if that has gone, at the first that is not older.
local rank = 0
if last ~= '' then
  rank = redis.call('ZRANK', batches_index_key(), last)
  if rank then
    rank = rank + 1
  else
    rank = redis.call('ZCOUNT', batches_index_key(), '-inf', '(' .. last_created)
  end
end
local oldest =
  redis.call('ZRANGE', batches_index_key(), rank, rank + max_looks - 1, 'WITHSCORES')
if #oldest == 2 * max_looks then dropped[1] = 0 end
for i = 1, #oldest, 2 do
  if #dropping >= max_batches or events >= max_events then
    dropped[1] = 0
    break
  end
  if not choose(oldest[i]) then last, last_created = oldest[i], oldest[i + 1] end
end
dropped[2], dropped[3] = last, last_created
-- Before the batches are removed, which wakes the heads of their lanes: the notices belong there.
notices.note_counted(now, seed, 'autodrop')
for _, batch in ipairs(dropping) do
  local bid, token, length, attempts = unpack(batch)
  if token ~= '' then
    remove_batch(bid, token, length, max_in_flight, attempts ~= '0', true)
  else -- an index entry without a batch
    redis.call('ZREM', batches_index_key(), bid)
  end
  remove_batch_job(bid)
end
return dropped
