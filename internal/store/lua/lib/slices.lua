-- Subscribers with options, and batches that are delivered in slices: a part of their events at a
-- time, because a body has a limit, because the subscriber took only some, or to find the event
-- that it refuses.
--
-- Basis     what BATCH.take returns besides: see basisReply in slices.go
-- Result    of BATCH.complete and BATCH.retry, from 9 on: see sliceArgs in slices.go; then for each
--           dead letter: its UID, or the batch's UID for all events that are left, reason, status,
--           error, note, webhook_id, which events
-- Events are ranges of their indexes in the batch, from 0, both ends included: '0-49 61-61'.

-- Scripts that need them create them, as in setbacks.lua.
local function slices()
  local self = {}
  local ATTEMPTS_TTL = 7 * 86400000 -- ms
  local MIN_EVENT_BYTES = 40 -- that an event has in a body at least
  local MINUTE = 60000 -- ms
  local LATENESS = 20 -- ms, of a worker that comes by for a batch that was paced: it costs no pace
  local REMOVED = '\0removed' -- in the place of an event that leaves its batch

  -- The basis for taking a batch: its lane, if one batch of that may be in flight; the set where it
  -- stands while it takes in events; and the other facts from the options and the state.
  function self.basis(token, bid)
    local options = redis.pcall('HMGET', options_key(token), 'strict_order', 'max_bytes',
      'max_requests_per_minute', 'max_events_per_minute', 'keep_age', 'lanes', 'generation',
      'older')
    local batch = redis.pcall('HMGET', batch_state_key(bid), 'revision', 'refusals', 'suspect',
      'test', 'webhook_id', 'replay', 'gap', 'lane')
    if options[7] or options[8] then subscriber_lanes().adopt(token) end
    local strict, number, lane = options[1] == 'true', tonumber(batch[8]) or 0, nil
    if strict or options[6] or number > 0 then lane = lane_of_subscriber(token, number) end
    return {
      lane = lane, current_set = current_of_lane_key(token, number), strict = strict,
      max_bytes = tonumber(options[2]),
      requests = tonumber(options[3]), events = tonumber(options[4]),
      keep_age = tonumber(options[5]), suspect = tonumber(batch[3]) or 0, test = batch[4] == '1',
      gap = batch[7] == '1', batch = batch,
    }
  end

  -- How far ahead of others (ms, below 1) a batch comes up that waits for the same time: the lanes
  -- that share a pace take turns by the age of their batches. The scale is logarithmic, since a
  -- score is exact to 1/4096 ms.
  function self.ahead(now, created)
    return math.log(1 + math.max(0, now - (tonumber(created) or 0))) / 30
  end

  -- Drops a batch that has come up and is older than its subscriber keeps, given its header, unless
  -- it is a test event or a gap notice. Returns the number of its events lost by that, nil if it
  -- stays. A notice of the loss derives its UID from the batch's, which is unique, so that no
  -- delivery has to bring a new one.
  function self.expire(entry, token, basis, header)
    if not basis.keep_age or basis.test or basis.gap then return nil end
    local age = tonumber(entry.now) - (tonumber(header[2]) or 0)
    if age <= basis.keep_age then return nil end
    local notices = gaps()
    local lost = notices.count(token, batch_key(entry.arg), events_of(entry.arg))
    notices.note_counted(entry.now, string.sub(entry.arg, 5), 'retention')
    setbacks().discard(entry, token, entry.failures)
    return lost
  end

  -- Begins an attempt: limits its slice, and makes the next wait for its pace. Returns the index in
  -- the list of the last event to read (text), and the values of Basis in Go.
  function self.begin(entry, token, version, basis)
    if basis.gap then gaps().close(token, batch_key(entry.arg)) end
    local total = events_of(entry.arg)
    local count = total
    if basis.suspect > 0 then count = math.min(count, math.ceil(basis.suspect / 2)) end
    if basis.max_bytes then
      count = math.min(count, math.max(1, math.floor(basis.max_bytes / MIN_EVENT_BYTES)))
    end
    local pause = 0
    if basis.requests then pause = MINUTE / basis.requests end
    if basis.events then pause = math.max(pause, count * MINUTE / basis.events) end
    if pause > 0 and not basis.test then
      local now, due = tonumber(entry.now), state_of(token).paced_until or 0
      if now - due <= LATENESS then now = due end
      local paced_until = string.format('%.3f', now + pause)
      redis.call('HSET', delivery_key(token), 'paced_until', paced_until)
    end
    local shown, batch = { version, total, count }, basis.batch
    for i = 1, 7 do shown[3 + i] = batch[i] or false end
    return string.format('%d', HEADER + count - 1), shown
  end

  local function note_attempt(token, record, kept)
    if type(redis.pcall('LPUSH', attempts_key(token), record)) ~= 'number' then
      redis.call('DEL', attempts_key(token)) -- it was of another type
      redis.call('LPUSH', attempts_key(token), record)
    end
    redis.call('LTRIM', attempts_key(token), 0, kept - 1)
    redis.call('PEXPIRE', attempts_key(token), ATTEMPTS_TTL)
  end

  -- Removes events from a batch that keeps others. Returns how many, and their bytes.
  local function remove_events(bid, header, ranges)
    local batch, removed, bytes = batch_key(bid), 0, 0
    local prefix = string.match(ranges, '^0%-(%d+)$')
    if prefix then
      removed = prefix + 1
      bytes = bytes_of(redis.call('LPOP', batch, HEADER + removed), HEADER + 1)
      redis.call('LPUSH', batch, '1', header[2], header[1])
      return removed, bytes
    end
    for first, last in string.gmatch(ranges, '(%d+)%-(%d+)') do
      bytes = bytes + bytes_of(redis.call('LRANGE', batch, HEADER + first, HEADER + last), 1)
      for i = tonumber(first), tonumber(last) do
        redis.call('LSET', batch, HEADER + i, REMOVED)
        removed = removed + 1
      end
    end
    redis.call('LREM', batch, 0, REMOVED)
    redis.call('LSET', batch, LAST_OF_HEADER, '1')
    return removed, bytes
  end

  local function change_state(bid, refusals, suspect)
    if refusals == '' then return end
    if refusals == '0' and suspect == '0' then
      redis.call('HDEL', batch_state_key(bid), 'refusals', 'suspect')
    else
      redis.call('HSET', batch_state_key(bid), 'refusals', refusals, 'suspect', suspect)
    end
  end

  -- Forgets the test event that a batch was, if it was one.
  function self.end_test(token, bid)
    if redis.pcall('HGET', delivery_key(token), 'test') ~= bid then return end
    redis.call('HDEL', delivery_key(token), 'test')
    options_versions().drop(token)
  end

  -- Makes the dead letters of a result. One of the whole batch comes last: it is returned.
  local function extract_letters(entry, header)
    local result, whole, parts, last = entry.result, nil, {}, -1
    for i = 18, #result, 7 do
      local letter = { unpack(result, i, i + 6) }
      if letter[1] == entry.arg then
        whole = letter
      else
        table.insert(parts, letter)
        last = math.max(last, tonumber(string.match(letter[7], '%d+$')))
      end
    end
    if last < 0 then return whole end
    local events = redis.call('LRANGE', batch_key(entry.arg), HEADER, HEADER + last)
    local made = letters()
    for _, letter in ipairs(parts) do
      made.extract(entry.arg, header, entry.now, letter, events)
    end
    return whole
  end

  -- Records the further results of an attempt, given its batch's header. Afterwards each event is
  -- either in the batch, or in a dead letter, or gone. Nothing is kept for a subscription that is
  -- gone. Returns the bytes of the batch's remaining events, as text, if all of them are a dead
  -- letter now.
  function self.settle(entry, header, state)
    local record, records, unused_pace, _, refusals, suspect, removed, lost, notice =
      unpack(entry.result, 9, 17)
    local bid, token = entry.arg, header[1]
    local kept = state.name or setbacks().is_subscribed(token)
    if is_former(state, bid) then kept = false end
    if kept and record ~= '' then note_attempt(token, record, records) end
    if not unused_pace then return nil end
    if kept and unused_pace ~= '0' and state.paced_until then
      redis.pcall('HINCRBYFLOAT', delivery_key(token), 'paced_until', '-' .. unused_pace)
    end
    local whole
    if kept then whole = extract_letters(entry, header) end
    if kept and lost ~= '0' then
      gaps().note(token, entry.now, notice, {
        events = tonumber(lost), batches = 1, since = tonumber(header[2]) or 0,
        untl = tonumber(header[2]) or 0, reason = 'rejected',
      })
    end
    if removed ~= '' then
      local events, bytes = remove_events(bid, header, removed)
      change_gauge(event_gauge_key(), token, -events)
      change_gauge(bytes_gauge_key(), token, exact(-bytes))
      redis.call('HINCRBY', batch_state_key(bid), 'revision', 1)
      redis.call('HDEL', batch_state_key(bid), 'webhook_id')
    end
    change_state(bid, refusals, suspect)
    if whole then return letters().bury(bid, token, entry.now, whole) end
    return nil
  end

  return self
end
