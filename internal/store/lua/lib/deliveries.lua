-- Batches as a kind of the queue's entries: takes a batch with the data needed to deliver it, and
-- records the result of its delivery.
--
-- Settings  1 how many batches of one subscriber may be in flight, 2 '1' to return traceparents,
--           3 '1' while the Ruby original may run too
-- Result    1 the number of events left in the batch, 2 how many the subscriber acknowledged,
--           3 points to add to its health, 4 until when it is throttled (ms), 0 if it is not, 5
--           what failed: 'endpoint', 'batch' if the endpoint refused only that, '' if neither is at
--           fault, 'none' if nothing did, 6 its token when the batch was taken, 7 how many of its
--           batches may be taken ahead from now on, '' to keep that number, 8 the bytes of the
--           events left, '' if the worker has not read them all, and only if there is more to note
--           9.. see slices.lua

local RECHECK = 250 -- ms, until an entry is looked at again that no thread may take now
local MISSING_FOR = 60000 -- ms, for a batch that exists, but in a form that no version writes
local FIRST_READ = 32 -- values of a batch that are read before it is known to be taken
local LAST_READ = '31' -- FIRST_READ - 1
local MAX_AHEAD_BYTES = 65536 -- bytes of the batches that are taken ahead by one call

-- The founding fields of subscribers that a script has read, by token.
local SUBSCRIBERS = {}

-- A subscriber's founding fields: callback, uuid, health_points, timeout, max_events.
local function subscriber_of(token)
  SUBSCRIBERS[token] = SUBSCRIBERS[token] or redis.call('HMGET', subscriber_key(token),
    'callback', 'uuid', 'health_points', 'timeout', 'max_events')
  return SUBSCRIBERS[token]
end

-- Makes a batch wait if it is not its turn, given when it was opened. Returns whether it waits.
local function has_to_wait(entry, token, state, refused, basis, created, callback)
  local lane, max_in_flight = lane_of_subscriber(token), tonumber(entry.settings[1])
  if basis and basis.lane then -- one is in flight
    lane = basis.lane
    if max_in_flight > 1 then LANES[lane] = nil end -- it was read for another number
    max_in_flight = 1
  end
  local retry_at = refused and setbacks().retry_at(entry, token, lane, basis)
  if retry_at then
    put_off(entry, retry_at)
  elseif not is_in_turn(lane, entry.queue, entry.job, max_in_flight)
    or (refused and state.standing == FAILING
      and setbacks().yields(token, lane, entry.job, max_in_flight)) then
    put_off(entry, entry.wait_until)
  elseif state.blocked_until > tonumber(entry.now) then -- it keeps its turn; those behind wait
    local ahead = nil
    if basis and basis.lane then ahead = slices().ahead(entry.now, created) end
    put_off(entry, math.min(math.ceil(state.blocked_until), tonumber(entry.wait_until)), ahead)
  elseif state.standing < entry.min_standing then
    put_off(entry, entry.now + RECHECK)
  else
    local place = entry.full and redis.call('ZRANK', lane, entry.job) or nil
    return put_off_if_full(entry, token, place, nil, callback)
  end
  return true
end

-- Reads a batch's list, or as much of it as shows whether to deliver it. First adopts the Ruby
-- original's part of the batch, if the batch is not found or the original may be adding to it.
-- Returns also whether it adopted any.
local function read_batch(bid, migrating)
  local batch = redis.pcall('LRANGE', batch_key(bid), '0', LAST_READ) -- a table in any case
  local adopted = (#batch < HEADER or migrating) and originals().adopt(bid)
  if adopted then batch = redis.pcall('LRANGE', batch_key(bid), '0', LAST_READ) end
  return batch, adopted
end

-- Closes a batch to new events, given the set where it stands while it takes in some, and counts
-- the attempt. Returns the rest of it, up to an index of its list (text), false if there is none.
local function begin_attempt(entry, token, batch, subscriber, migrating, last, current_set)
  local attempts = entry.failures == 0 and '1' or entry.failures + 1
  redis.call('LSET', batch_key(entry.arg), LAST_OF_HEADER, attempts)
  redis.call('HSET', subscriber_key(token), 'last_attempted_at', entry.now)
  -- A full batch is not current, unless the original has lowered max_events since; nor is one that
  -- was tried before.
  local max_events = not migrating and tonumber(subscriber[5])
  local full = max_events and #batch < FIRST_READ and #batch - HEADER >= max_events
  if entry.failures == 0 and not full then
    redis.pcall('SREM', current_set, entry.arg)
  end
  if #batch < FIRST_READ then return false end
  return redis.call('LRANGE', batch_key(entry.arg), FIRST_READ, last)
end

-- The traceparents of a batch, false if there are none or the settings do not ask for them.
local function traceparents_of(entry, bid)
  if entry.settings[2] ~= '1' then return false end
  local found = redis.pcall('LRANGE', traceparents_key(bid), 0, -1)
  return found[1] ~= nil and found -- not nil, which would end the list that it is in
end

-- Takes the batch that an entry delivers. Returns the values of batchReply in deliveries.go, and
-- the beginning of the batch's list.
function BATCH.take(entry)
  local bid, migrating = entry.arg, entry.settings[3] == '1'
  local batch, adopted = read_batch(bid, migrating)
  local token = batch[1]
  if not token then
    if redis.call('EXISTS', original_key(bid)) == 1 then -- not as the original writes it
      put_off(entry, entry.now + MISSING_FOR)
    else
      discard(entry)
    end
    return nil
  end
  entry.failures = tonumber(batch[3]) or 0
  local subscriber = subscriber_of(token)
  if not subscriber[1] then
    token = setbacks().relabel(bid, batch)
    subscriber = subscriber_of(token)
  end
  if not subscriber[1] then
    return nil, { token, setbacks().discard(entry, token, entry.failures) }
  end
  local state = state_of(token)
  if state.former then
    local events = setbacks().discard_former(entry, token, state)
    if events then return nil, { token, events } end
    state = state_of(token)
  end
  local basis = state.options_version and slices().basis(token, bid) or false
  local expired = basis and slices().expire(entry, token, basis, batch)
  if expired then return nil, { token, expired, state.name or '' } end
  local refused = was_refused(token, bid, entry.failures)
  if refused and basis and basis.strict then -- it keeps its turn
    redis.call('ZADD', failed_key(token), KEPT, bid)
    refused = false
  end
  local is_test = basis and basis.test
  if not is_test and has_to_wait(entry, token, state, refused, basis, batch[2],
    subscriber[1]) then
    return nil
  end
  if #batch < HEADER then
    setbacks().discard(entry, token, 1)
    return nil
  end
  local last, shown, current_set = '-1', false, current_key(token)
  if basis then
    last, shown = slices().begin(entry, token, state.options_version, basis)
    current_set = basis.current_set
  end
  local max_events = tonumber(subscriber[5])
  if state.ahead and not basis and not state.former and not migrating and entry.failures == 0
    and state.standing == PROVEN and max_events and HEADER + max_events < FIRST_READ then
    entry.quick = { -- for take_ahead
      token = token, most = math.min(state.ahead, entry.max_ahead), max_events = max_events,
    }
  end
  local rest = begin_attempt(entry, token, batch, subscriber, migrating, last, current_set)
  return { -- in one table: each that Redis returns costs it as much as ten values
    state.name or setbacks().note_name(token), -- client
    state.standing, -- standing
    state.refusals or 0, -- refusals
    state.refused_since, -- refused_since
    traceparents_of(entry, bid), -- traceparents
    adopted and 1 or 0, -- adopted
    subscriber[1], -- callback
    subscriber[2], -- uuid
    subscriber[3], -- health
    subscriber[4], -- timeout
    subscriber[5], -- max_events
    rest, -- rest
    shown, -- basis
    state.ahead or 0, -- ahead
    unpack(batch),
  }
end

-- Reads batches that may be taken ahead, given their jobs in order, up to the first that may not:
-- they are the subscriber's, full and small, and were never tried. If they are to be scheduled,
-- waits says which are. Returns what take_ahead returns.
local function read_ahead(entry, jobs, waits)
  local found, bytes, quick = {}, 0, entry.quick
  for i, job in ipairs(jobs) do
    local _, name, bid = kind_of(entry.queue, job)
    if name ~= 'batch' or (waits and not waits[i]) then break end
    local batch = redis.pcall('LRANGE', batch_key(bid), '0', LAST_READ)
    if batch[1] ~= quick.token or batch[3] ~= '0' or #batch == FIRST_READ
      or #batch - HEADER < quick.max_events then
      break
    end
    for event = HEADER + 1, #batch do bytes = bytes + #batch[event] end
    if bytes > MAX_AHEAD_BYTES then break end
    found[i] = { job, { traceparents_of(entry, bid), unpack(batch) } }
  end
  return found
end

-- The batches that follow one that was taken, for a quick subscriber: in its lane or, if none waits
-- there, among the instant ones. For each it returns the traceparents, false if there are none, and
-- then the batch's list. Where several may be in flight, each takes its share of the waiting ones.
-- A batch taken ahead stands in no lane, where it would block those behind it.
function BATCH.take_ahead(entry)
  local quick = entry.quick
  if not quick then return {} end
  local most, max, lane = quick.most, tonumber(entry.settings[1]), lane_of_subscriber(quick.token)
  local share, instant = most, instant_key(entry.queue)
  local waiting_in_lane = redis.call('ZCARD', lane) - max
  if max > 1 then
    share = waiting_in_lane > 0 and waiting_in_lane or redis.call('LLEN', instant)
    share = math.min(most, math.floor(share / max))
  end
  if share < 1 then return {} end
  if waiting_in_lane > 0 then
    local jobs = redis.call('ZRANGE', lane, max, max + share - 1)
    local found = read_ahead(entry, jobs, waiting(entry.queue, jobs))
    if max > 1 and found[1] then redis.call('ZREM', lane, unpack(jobs, 1, #found)) end
    return found
  end
  local jobs, last = {}, redis.call('LRANGE', instant, -share, -1)
  for i = #last, 1, -1 do table.insert(jobs, last[i]) end
  local found = read_ahead(entry, jobs)
  if max == 1 then
    for _, ahead in ipairs(found) do join_lane(lane, ahead[1]) end
  end
  return found, true
end

-- Makes a batch that was taken ahead, and was not begun, wait for its turn as before. Where several
-- may be in flight it comes after the others: no order is promised there.
function BATCH.give_back(settings, bid, job)
  local token = redis.pcall('LRANGE', batch_key(bid), 0, 0)[1]
  if not token then return end
  local lane, max = subscriber_lanes().of(token, bid, tonumber(settings[1]))
  if is_in_turn(lane, 'main', job, max) then make_instant('main', job) end
end

-- Adds points to a subscriber's health, within 0 and 100.
local function add_health(token, entry)
  if entry.result[3] == '0' then return end
  local health = tonumber(redis.pcall('HGET', subscriber_key(token), 'health_points')) or 100
  local new = math.max(0, math.min(100, health + entry.result[3]))
  if new ~= health then redis.call('HSET', subscriber_key(token), 'health_points', new) end
end

-- The header of an entry's batch; nil if that was dropped in the meantime, or removed from outside.
local function header_of(entry)
  local header = redis.pcall('LRANGE', batch_key(entry.arg), '0', LAST_OF_HEADER)
  if header[1] then return header end
  setbacks().lose(entry)
  return nil
end

-- Notes how many batches of a subscriber may be taken ahead, unless that stays (empty).
local function note_ahead(token, state, number)
  if number == '' then return end
  state.ahead = tonumber(number)
  if number == '0' then
    redis.call('HDEL', delivery_key(token), 'ahead')
  else
    redis.call('HSET', delivery_key(token), 'ahead', number)
  end
end

-- Notes for its subscriber the result of a batch's delivery; refused says whether the batch was
-- refused before, and header is the header of a batch that stays.
local function note_result(entry, token, state, refused, header)
  local result, throttled_until = entry.result, entry.result[4]
  if not (state.name or setbacks().is_subscribed(token)) then return end
  add_health(token, entry)
  if result[2] ~= '0' or result[5] == 'none' then
    if state.throttled_until then
      setbacks().end_throttle(token, state.refused_since, tonumber(entry.now))
      subscriber_lanes().wake(token, tonumber(entry.settings[1]))
      STATES[token] = nil
    end
    if refused then setbacks().retry_refused(token) end
    change_gauge(delivery_key(token), 'events_sent', result[2])
    note_ahead(token, state, result[7])
    state.standing = PROVEN -- for acquire, which may read the same state
    return
  end
  local before = state.throttled_until or '0'
  if result[5] ~= '' then
    if header then setbacks().note_failed(entry, token, header, state.throttled_until) end
    if throttled_until == '0' and before == '0' then throttled_until = entry.now end
  end
  -- Of several that were in flight, the longest throttle holds.
  if throttled_until ~= '0' and tonumber(throttled_until) >= (tonumber(before) or 0) then
    redis.call('HSET', delivery_key(token), 'throttled_until', throttled_until)
  end
  STATES[token] = nil
end

-- Removes a batch that was delivered, or can never be.
function BATCH.complete(entry)
  local bid, header = entry.arg, header_of(entry)
  if not header then return end
  local token, failures = header[1], (tonumber(header[3]) or 1) - 1 -- the attempts count this one
  local refused, state = was_refused(token, bid, failures), state_of(token)
  local bytes = entry.result[8]
  if entry.result[9] then
    local parts = slices()
    bytes = parts.settle(entry, header, state) or bytes
    parts.end_test(token, bid)
    STATES[token] = nil -- its pace may have changed
  end
  if bytes == '' then bytes = nil end
  remove_batch(
    bid, token, entry.result[1], tonumber(entry.settings[1]), failures > 0, false, bytes)
  if is_former(state, bid) then return setbacks().forget_former(token) end
  note_result(entry, token, state, refused)
end

-- Whether a delivery has brought about nothing but that its batch is done.
local function is_plain(result) return result[2] ~= '0' and result[5] == '' and not result[9] end

-- Completes batches that one worker has delivered after each other: at once, if there is nothing
-- else to be done about any of them.
function BATCH.complete_all(entries)
  local token, plain = false, true
  for _, entry in ipairs(entries) do
    token = token or redis.pcall('LRANGE', batch_key(entry.arg), 0, 0)[1]
    plain = plain and is_plain(entry.result)
  end
  local state = token and state_of(token)
  if not plain or not state or state.options_version or state.former then
    for _, entry in ipairs(entries) do BATCH.complete(entry) end
    return
  end
  local bids, jobs, others, events, bytes = {}, {}, {}, 0, 0
  local sum = { '0', 0, 0, '0', '', token, '' }
  for _, entry in ipairs(entries) do
    local bid, result = entry.arg, entry.result
    table.insert(jobs, entry.job)
    if redis.call('DEL', batch_key(bid)) == 1 then -- else it was removed from outside
      table.insert(others, traceparents_key(bid))
      table.insert(others, batch_state_key(bid))
      table.insert(bids, bid)
      events, bytes = events + result[1], bytes + result[8]
      sum[2], sum[3] = sum[2] + result[2], sum[3] + result[3]
      if result[7] ~= '' then sum[7] = result[7] end
    end
  end
  redis.call('DEL', unpack(others))
  redis.call('ZREM', batches_index_key(), unpack(bids))
  count_batches(token, exact(-#bids), exact(-events), exact(-bytes))
  local max = tonumber(entries[1].settings[1])
  leave_lane(lane_of_subscriber(token), 'main', max, unpack(jobs))
  sum[2], sum[3] = exact(sum[2]), exact(sum[3])
  note_result({ result = sum, now = entries[1].now, settings = entries[1].settings }, token, state)
end

-- Makes a batch that failed give up its turn, and throttles its subscriber. A batch that is partly
-- done keeps its turn if the result says so.
function BATCH.retry(entry)
  local bid, header = entry.arg, header_of(entry)
  if not header then return end
  local token = header[1]
  local state = state_of(token)
  if header[3] == '0' then -- it was taken ahead
    redis.call('LSET', batch_key(bid), LAST_OF_HEADER, '1')
    header[3] = '1'
  end
  if entry.result[9] then
    slices().settle(entry, header, state)
    STATES[token] = nil -- its pace may have changed
  end
  if not keeps_turn(entry) then
    local max = tonumber(entry.settings[1])
    if state.options_version then
      local lane, max_in_flight = subscriber_lanes().of(token, bid, max)
      leave_lane(lane, entry.queue, max_in_flight, entry.job)
    else
      leave_lane(lane_of_subscriber(token), entry.queue, max, entry.job)
    end
  end
  if is_former(state, bid) then -- to be dropped
    make_instant(entry.queue, entry.job)
    return
  end
  local refused = false
  local overtaken = setbacks().was_overtaken(token, bid)
  if entry.result[2] ~= '0' or entry.result[5] == 'none' then
    refused = was_refused(token, bid, tonumber(header[3]) or 1)
    redis.pcall('ZREM', failed_key(token), bid)
  elseif overtaken then
    make_instant(entry.queue, entry.job)
    return
  end
  note_result(entry, token, state, refused, header)
end
