-- Gap notices: they tell a subscriber with the option `gap_notices`, in its own queue, that it has
-- lost events. A notice is a batch of one event of the type gap. While it is not being delivered,
-- later losses are added to it: so there are few, however long the endpoint fails. A notice that
-- was tried and then added to has other content, as a batch that has lost some of its events.

-- Scripts that need them create them, as in setbacks.lua. A loss is a table: of events in batches,
-- which were created since and untl (ms), for a reason. Of several reasons a notice gives the last.
local function gaps()
  local self = {}
  local wanting, lost = {}, {} -- by token

  local function wants_notices(token)
    if wanting[token] == nil then
      wanting[token] = redis.pcall('HGET', options_key(token), 'gap_notices') == 'true'
    end
    return wanting[token]
  end

  -- MessagePack of a text of less than 32 bytes, and of a whole number in the width of the largest,
  -- so that figures stand at the same places in all notices.
  local WIDTH = 9
  local function text(value) return string.char(160 + #value) .. value end
  local function number(value)
    local bytes = ''
    for _ = 2, WIDTH do
      bytes = string.char(value % 256) .. bytes
      value = math.floor(value / 256)
    end
    return '\207' .. bytes
  end
  local BEGINS = '\146\161e\133' .. text('t')
  local GOES_ON = text('o') .. text('') .. text('y') .. text('gap') .. text('u') .. text('')
    .. text('d') .. '\133'
  local FIGURES = { 'events', 'batches', 'since', 'until' }

  local function pack_notice(now, loss)
    local event = BEGINS .. number(now) .. GOES_ON
    for i, figure in ipairs({ loss.events, loss.batches, loss.since, loss.untl }) do
      event = event .. text(FIGURES[i]) .. number(math.max(0, figure))
    end
    return event .. text('reason') .. text(loss.reason)
  end

  -- The loss that an event tells if it is a notice, without the reason; nil if it is none.
  local function told_by(event)
    if type(event) ~= 'string' then return nil end
    local place, figures = #BEGINS + WIDTH + 1, {}
    if string.sub(event, 1, #BEGINS) ~= BEGINS
      or string.sub(event, place, place + #GOES_ON - 1) ~= GOES_ON then
      return nil
    end
    place = place + #GOES_ON
    for i, name in ipairs(FIGURES) do
      local value = 0
      for _, byte in ipairs({ string.byte(event, place + #name + 2, place + #name + WIDTH) }) do
        value = value * 256 + byte
      end
      figures[i], place = value, place + 1 + #name + WIDTH
    end
    return { events = figures[1], batches = figures[2], since = figures[3], untl = figures[4] }
  end

  local function sum(a, b)
    return {
      events = a.events + b.events, batches = a.batches + b.batches,
      since = math.min(a.since, b.since), untl = math.max(a.untl, b.untl), reason = b.reason,
    }
  end

  -- The UID of a subscriber's notice whose present content was not tried yet, false if there is
  -- none.
  function self.waiting(token) return redis.pcall('HGET', gaps_key(token), 'batch') or false end

  -- Records that the notice with this list no longer waits, if it did.
  function self.close(token, list)
    local bid = self.waiting(token)
    if bid and batch_key(bid) == list then redis.call('DEL', gaps_key(token)) end
  end

  -- The UIDs of a subscriber's notices that are queued, tried or not.
  function self.queued(token)
    local noted, there = redis.pcall('HGET', delivery_key(token), 'notices'), {}
    if type(noted) ~= 'string' then return there end
    for bid in string.gmatch(noted, '%S+') do
      if BATCH.exists(bid) then table.insert(there, bid) end
    end
    return there
  end

  local function note_queued(token, bids)
    if bids[1] then
      redis.call('HSET', delivery_key(token), 'notices', table.concat(bids, ' '))
    else
      redis.call('HDEL', delivery_key(token), 'notices')
    end
  end

  -- Removes the notice with this list from the records, as it goes.
  local function forget(token, list)
    local left = {}
    for _, bid in ipairs(self.queued(token)) do
      if batch_key(bid) ~= list then table.insert(left, bid) end
    end
    note_queued(token, left)
    self.close(token, list)
  end

  -- The UID and the content of the notice to which a loss is added; nil if there is none.
  local function find(token)
    local bids = { self.waiting(token) or nil }
    if not bids[1] then bids = self.queued(token) end
    for _, bid in ipairs(bids) do
      local told = told_by(redis.pcall('LINDEX', batch_key(bid), HEADER))
      if told and not is_in_flight(bid) then return bid, told end
    end
    return nil
  end

  local function open(token, now, uid, event)
    redis.call('DEL', gaps_key(token))
    note_queued(token, { uid, unpack(self.queued(token)) })
    redis.call('RPUSH', batch_key(uid), token, exact(now), 0, event)
    redis.call('HSET', batch_state_key(uid), 'gap', 1)
    add_batch(uid, token, exact(now), 1)
    local lane, max_in_flight = subscriber_lanes().of(token, uid, noted_max_in_flight())
    join_head(lane, 'main', job_of(uid), max_in_flight)
  end

  -- Tells a subscriber of a loss at a time (ms), if it wants to know, in a notice with a UID should
  -- there be none to which it can be added.
  function self.note(token, now, uid, loss)
    if not wants_notices(token) then return end
    now = tonumber(now)
    local bid, told = find(token)
    if bid then
      loss = sum(told, loss)
      local before, notice = redis.call('LINDEX', batch_key(bid), HEADER), pack_notice(now, loss)
      redis.call('LSET', batch_key(bid), HEADER, notice)
      change_gauge(bytes_gauge_key(), token, #notice - #before)
      note_changed(bid, redis.call('LINDEX', batch_key(bid), LAST_OF_HEADER))
    else
      bid = uid
      open(token, now, uid, pack_notice(now, loss))
    end
    redis.call('HSET', gaps_key(token), 'batch', bid, 'events', exact(loss.events),
      'batches', exact(loss.batches), 'since', exact(loss.since),
      'until', exact(loss.untl), 'reason', loss.reason)
  end

  -- Counts a number of events of a list, of a batch or a dead letter, as lost to a subscriber. For
  -- a notice it counts the events that it reports. Returns how many were not counted before.
  function self.count(token, list, events)
    if not wants_notices(token) then return events end
    local told
    if events == 1 then told = told_by(redis.call('LINDEX', list, HEADER)) end
    local created = tonumber(redis.call('LINDEX', list, 1)) or 0
    local loss = told or { events = events, batches = 1, since = created, untl = created }
    if lost[token] then loss = sum(lost[token], loss) end
    lost[token] = loss
    if not told then return events end
    forget(token, list)
    return 0
  end

  -- Notifies all subscribers of counted losses, given the first 16 characters of the notices' UIDs.
  function self.note_counted(now, seed, reason)
    local n = 0
    for token, loss in pairs(lost) do
      loss.reason, n = reason, n + 1
      self.note(token, now, seed .. string.format('%04d', n), loss)
    end
    lost = {}
  end

  return self
end
