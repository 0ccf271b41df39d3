-- Gap notices: they tell a subscriber with the option `gap_notices`, in its own queue, that it has
-- lost events. A notice is a batch of one event of the type gap. While it waits untried, later
-- losses are added to it.

-- These are made by a script that needs them, as those of setbacks.lua. A loss is a table: of
-- events in batches, which were created since and untl (ms), for a reason. Of several reasons a
-- notice tells the last.
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

  -- The UID of the notice to which a subscriber's losses are added, false if there is none.
  function self.waiting(token) return redis.pcall('HGET', gaps_key(token), 'batch') or false end

  -- Adds no more losses to a notice, of which the list is given, if they were added to that.
  function self.close(token, list)
    local bid = self.waiting(token)
    if bid and batch_key(bid) == list then redis.call('DEL', gaps_key(token)) end
  end

  local function open(token, now, uid, event)
    redis.call('DEL', gaps_key(token))
    redis.call('RPUSH', batch_key(uid), token, milliseconds(now), 0, event)
    redis.call('HSET', batch_state_key(uid), 'gap', 1)
    add_batch(uid, token, milliseconds(now), 1)
    local lane, max_in_flight = generations().lane_of(token, uid, noted_max_in_flight())
    join_head(lane, 'main', job_of(uid), max_in_flight)
  end

  -- Tells a subscriber of a loss at a time (ms), if it wants to know, in a notice with a UID should
  -- none be waiting.
  function self.note(token, now, uid, loss)
    if not wants_notices(token) then return end
    now = tonumber(now)
    local found = redis.pcall('HMGET', gaps_key(token), 'batch', unpack(FIGURES))
    local bid = found[1]
    if bid and redis.pcall('LINDEX', batch_key(bid), 2) == '0' then
      loss = sum({
        events = tonumber(found[2]) or 0, batches = tonumber(found[3]) or 0,
        since = tonumber(found[4]) or now, untl = tonumber(found[5]) or 0,
      }, loss)
      redis.call('LSET', batch_key(bid), HEADER, pack_notice(now, loss))
    else
      bid = uid
      open(token, now, uid, pack_notice(now, loss))
    end
    redis.call('HSET', gaps_key(token), 'batch', bid, 'events', milliseconds(loss.events),
      'batches', milliseconds(loss.batches), 'since', milliseconds(loss.since),
      'until', milliseconds(loss.untl), 'reason', loss.reason)
  end

  -- Counts a number of events of a list, of a batch or a dead letter, as lost to a subscriber.
  -- Those of a notice are what it tells. Returns how many were not counted before.
  function self.count(token, list, events)
    if not wants_notices(token) then return events end
    local told
    if events == 1 then told = told_by(redis.call('LINDEX', list, HEADER)) end
    local created = tonumber(redis.call('LINDEX', list, 1)) or 0
    local loss = told or { events = events, batches = 1, since = created, untl = created }
    if lost[token] then loss = sum(lost[token], loss) end
    lost[token] = loss
    if not told then return events end
    self.close(token, list)
    return 0
  end

  -- Tells all subscribers of what was counted, given the first 16 characters of the notices' UIDs.
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
