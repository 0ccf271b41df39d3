-- Subscribers with several lanes. Their lanes between two changes are a generation. Its batches
-- wait until those of the generations before are done, so that no two events of one order key are
-- in flight at once, whatever lanes they have got.
--
-- A generation's name is '' if it is the one lane that a subscriber has by default, else the
-- version of the lanes. It stands, if it is not '', in
--   plans             for the subscriber: the one that a publish adds to
--   options:{token}   the same, as generation. There is also older: the generations before of which
--                     batches are left, in order, as name/number of lanes/number of batches; and
--                     passing, while failed batches of these are looked at: see pass_failed
--   batches:state     of each of its batches, with its lane

-- The version of a subscriber's lanes; '' if it has one, as by default.
local function generation_of(token) return redis.call('HGET', plans_key(), token) or '' end

local function lane_of_generation(token, generation, lane)
  if generation == '' then return lane_of_subscriber(token) end
  return lane_key('batch', token .. '/' .. generation .. '/' .. lane)
end

-- The batches of a subscriber that take in events.
local function current_batches(token)
  if generation_of(token) == '' then return redis.call('SMEMBERS', current_key(token)) end
  local lanes, batches = tonumber(redis.call('HGET', options_key(token), 'lanes')) or 1, {}
  for lane = 0, lanes - 1 do
    for _, bid in ipairs(redis.call('SMEMBERS', current_of_lane_key(token, lane))) do
      table.insert(batches, bid)
    end
  end
  return batches
end

local PASSED = false -- whether this script has passed failed batches: once, so that it stays short

-- These are made by a script that needs them, as those of setbacks.lua.
local function generations()
  local self = {}

  -- The generation of a batch, and the number of its lane. One of a generation that its subscriber
  -- does not have, as after it was deleted and has subscribed again, is of the default lane. What
  -- options:{token} has as generation and older is read unless it is given.
  function self.place(token, bid, options)
    if not state_of(token).plan then return '', 0 end
    local place = redis.pcall('HMGET', batch_state_key(bid), 'generation', 'lane')
    if not place[1] then return '', 0 end
    options = options or redis.pcall('HMGET', options_key(token), 'generation', 'older')
    if options[1] ~= place[1]
      and not string.find(options[2] or '', place[1] .. '/', 1, true) then
      return '', 0
    end
    return place[1], tonumber(place[2]) or 0
  end

  -- The lane of a batch; how many of it may be in flight, given how many of a default lane; the set
  -- where it stands while it takes in events; and its generation. See place for the options.
  function self.lane_of(token, bid, max, options)
    local name, lane = self.place(token, bid, options)
    local current = current_of_lane_key(token, lane)
    return lane_of_generation(token, name, lane), name == '' and max or 1, current, name
  end

  -- The generations of which batches are left, given what options:{token} has as older.
  local function parse(older)
    local found = {}
    for name, lanes, batches in string.gmatch(older or '', '([^/ ]*)/(%d+)/(%d+)') do
      table.insert(found, { name = name, lanes = tonumber(lanes), batches = tonumber(batches) })
    end
    return found
  end

  -- A subscriber's generations, the oldest first; the last is the one that is published to.
  function self.all(token)
    local found = redis.pcall('HMGET', options_key(token), 'older', 'generation', 'lanes')
    local all = parse(found[1])
    table.insert(all, { name = found[2] or '', lanes = tonumber(found[3]) or 1 })
    return all
  end

  local function put_older(token, all)
    local texts = {}
    for i = 1, #all - 1 do
      texts[i] = all[i].name .. '/' .. all[i].lanes .. '/' .. all[i].batches
    end
    if #texts > 0 then
      redis.call('HSET', options_key(token), 'older', table.concat(texts, ' '))
    elseif redis.call('HDEL', options_key(token), 'older', 'passing') > 0 then
      subscriber_plans().drop(token)
    end
  end

  -- Whether the batches of a generation wait for others, given what options:{token} has as older.
  function self.waits(older, name)
    local oldest = parse(older)[1]
    return oldest ~= nil and oldest.name ~= name
  end

  local function wake_lanes(token, generation, max)
    for lane = 0, generation.lanes - 1 do
      local key = lane_of_generation(token, generation.name, lane)
      wake_lane(key, 'main', generation.name == '' and max or 1)
    end
  end

  -- Wakes the batches whose turn it is, given how many of a default lane may be in flight.
  function self.wake(token, max)
    if not state_of(token).plan then return wake_lane(lane_of_subscriber(token), 'main', max) end
    wake_lanes(token, self.all(token)[1], max)
  end

  -- Wakes the first of each lane, since nothing holds the subscriber up any more. One of newer
  -- lanes waits for older ones, but not if it has failed.
  function self.wake_all(token, max)
    if not state_of(token).plan then return self.wake(token, max) end
    for _, generation in ipairs(self.all(token)) do wake_lanes(token, generation, max) end
  end

  -- Counts down the batches of a generation, one of which is gone or has had its turn; all, if none
  -- of the subscriber is left. After the last, those of the next come up.
  function self.count_down(token, name, none_left, max)
    local all = self.all(token)
    if #all == 1 then return end
    local oldest = all[1].name
    for i = #all - 1, 1, -1 do
      local generation = all[i]
      if generation.name == name then generation.batches = generation.batches - 1 end
      if none_left or generation.batches <= 0 then table.remove(all, i) end
    end
    put_older(token, all)
    if all[1].name ~= oldest then self.wake(token, max) end
  end

  -- Has a batch that has failed, and lets others pass, stand with those that come after the change
  -- of the lanes: it had its turn.
  function self.pass(token, bid, max)
    local name, lane = self.place(token, bid)
    local all = self.all(token)
    local current = all[#all]
    if name == current.name then return end
    if current.name == '' then
      redis.call('HDEL', batch_state_key(bid), 'generation', 'lane')
    else
      redis.call('HSET', batch_state_key(bid),
        'generation', current.name, 'lane', lane % current.lanes)
    end
    self.count_down(token, name, false, max)
  end

  -- Has batches that have failed before the lanes changed, and have let others pass since, not
  -- hold up the change: their next attempt may be long in coming. Looks at about fifty, from a
  -- cursor on, and notes as passing where the next slice begins, if there is more. One that is
  -- missed, as when Redis restarts in between, is waited for until it is tried.
  local function pass_failed(token, cursor, max)
    local found = redis.pcall('ZSCAN', failed_key(token), cursor, 'COUNT', 50)
    local next, failed = found[1] or '0', found[2] or {} -- none if the key is of another type
    if next == '0' then
      redis.call('HDEL', options_key(token), 'passing')
    else
      redis.call('HSET', options_key(token), 'passing', next)
    end
    for i = 1, #failed, 2 do -- with scores
      local bid = failed[i]
      local lane = self.lane_of(token, bid, max)
      if BATCH.exists(bid) and not redis.call('ZSCORE', lane, job_of(bid)) then
        self.pass(token, bid, max)
      end
    end
  end

  -- Begins with that, and wakes what waits for older lanes if there is more: it goes on.
  local function begin_passing(token)
    if redis.call('HGET', options_key(token), 'strict_order') == 'true' then return end
    local max = noted_max_in_flight()
    pass_failed(token, '0', max)
    if redis.call('HEXISTS', options_key(token), 'passing') == 0 then return end
    local all = self.all(token)
    for i = 2, #all do wake_lanes(token, all[i], max) end
  end

  -- Goes on with that, as a batch comes up that waits for older lanes, if there is more. Returns
  -- whether it did: then that batch is to come up again for the next slice.
  function self.go_on_passing(token, max)
    local cursor = not PASSED and redis.call('HGET', options_key(token), 'passing')
    if not cursor then return false end
    PASSED = true
    pass_failed(token, cursor, max)
    return true
  end

  -- Closes the batches that take in events.
  local function close_current(token, lanes)
    for lane = 0, lanes - 1 do
      local current = current_of_lane_key(token, lane)
      for _, bid in ipairs(redis.pcall('SMEMBERS', current)) do
        make_instant('main', job_of(bid))
      end
      redis.call('DEL', current)
    end
  end

  -- Begins a generation, whose options are written, given those there were and the version of its
  -- lanes. A subscriber that has one lane again has the default one, unless batches of that are
  -- left from before.
  function self.begin(token, all, version)
    local last = all[#all]
    close_current(token, last.lanes)
    local batches = tonumber(redis.pcall('HGET', batch_gauge_key(), token)) or 0
    for i = 1, #all - 1 do batches = batches - all[i].batches end
    if batches > 0 then
      last.batches = batches
      table.insert(all, {}) -- in the place of the one that begins
    end
    local name = version
    if (tonumber(redis.call('HGET', options_key(token), 'lanes')) or 1) == 1 then
      name = ''
      for i = 1, #all - 1 do
        if all[i].name == '' then name = version end
      end
    end
    if name == '' then
      redis.call('HDEL', options_key(token), 'generation')
      redis.call('HDEL', plans_key(), token)
    else
      redis.call('HSET', options_key(token), 'generation', name)
      redis.call('HSET', plans_key(), token, name)
    end
    put_older(token, all)
    if #all > 1 then begin_passing(token) end
  end

  -- Forgets the generations of a subscriber that goes. Its batches wait in the default lane then,
  -- of which so many may be in flight.
  function self.forget(token, max)
    local default = lane_of_subscriber(token)
    local keys = {}
    for _, generation in ipairs(self.all(token)) do
      for lane = 0, generation.lanes - 1 do
        local key = lane_of_generation(token, generation.name, lane)
        if key ~= default and redis.call('EXISTS', key) == 1 then table.insert(keys, key) end
      end
      close_current(token, generation.lanes)
    end
    -- At once: one after the other, what is there already would be moved again for each.
    if #keys > 0 then
      redis.call('ZUNIONSTORE', default, 1 + #keys, default, unpack(keys))
      redis.call('UNLINK', unpack(keys))
    end
    redis.call('HDEL', plans_key(), token)
    LANES[default] = nil -- it has others now
    wake_lane(default, 'main', max)
  end

  return self
end
