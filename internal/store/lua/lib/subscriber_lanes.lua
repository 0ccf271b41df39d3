-- The lanes of a subscriber, and the lane of a batch, which is the lane of its events:
-- batches:state has it as lane; without it, it is the first. A batch stays in its lane, even if its
-- subscriber has changed its lanes since; the new lanes apply to events published from then on.
--
-- While a subscriber has several, the key plans has the version of its lanes, which a publish
-- compares. If there were more than there are now, and batches may be left, options:{token} has
-- past_lanes: how many there were. It is removed with the subscriber's last batch. Without a
-- subscriber there is one lane, which has the rest of a subscription that has ended.

-- The version of a subscriber's lanes; '' if it has one, as by default.
local function lanes_version(token) return redis.call('HGET', plans_key(), token) or '' end

-- Scripts that need them create them, as in setbacks.lua.
local function subscriber_lanes()
  local self = {}

  local function read(token)
    return redis.pcall('HMGET', options_key(token), 'lanes', 'past_lanes', 'generation', 'older')
  end

  -- How many lanes a subscriber has now.
  function self.now(token)
    return tonumber(redis.pcall('HGET', options_key(token), 'lanes')) or 1
  end

  -- How many lanes of a subscriber there are in which batches may be.
  function self.count(token)
    local found = read(token)
    if found[3] or found[4] then
      self.adopt(token)
      found = read(token)
    end
    return math.max(tonumber(found[1]) or 1, tonumber(found[2]) or 1)
  end

  -- The lane of a batch; how many of it may be in flight, given how many of a subscriber with one
  -- lane; and the set where it stands while it takes in events.
  function self.of(token, bid, max)
    local state = state_of(token)
    if not state.options_version or is_former(state, bid) then
      return lane_of_subscriber(token), max, current_key(token)
    end
    local lane = tonumber(redis.pcall('HGET', batch_state_key(bid), 'lane')) or 0
    if lane > 0 or (max > 1 and self.now(token) > 1) then max = 1 end
    return lane_of_subscriber(token, lane), max, current_of_lane_key(token, lane)
  end

  -- Wakes the first of each lane, since the subscriber is no longer held up. Max batches of a lane
  -- may be in flight if there is only one.
  function self.wake(token, max)
    if not state_of(token).options_version then
      return wake_lane(lane_of_subscriber(token), 'main', max)
    end
    local count = self.count(token)
    if count > 1 then max = 1 end
    for lane = 0, count - 1 do wake_lane(lane_of_subscriber(token, lane), 'main', max) end
  end

  -- The batches of a subscriber that take in events.
  function self.current_batches(token)
    local batches = {}
    for lane = 0, self.count(token) - 1 do
      for _, bid in ipairs(redis.call('SMEMBERS', current_of_lane_key(token, lane))) do
        table.insert(batches, bid)
      end
    end
    return batches
  end

  -- Notes that a subscriber's options have other lanes, given in how many batches may have been
  -- before, and the version of the lanes.
  function self.change(token, before, version)
    local lanes = self.now(token)
    local left = tonumber(redis.pcall('HGET', batch_gauge_key(), token)) or 0
    if left > 0 and before > lanes then
      redis.call('HSET', options_key(token), 'past_lanes', before)
    else
      redis.call('HDEL', options_key(token), 'past_lanes')
    end
    if lanes > 1 then
      redis.call('HSET', plans_key(), token, version)
    else
      redis.call('HDEL', plans_key(), token)
    end
  end

  -- Removes the lanes of a subscriber that goes: its batches join the first lane, and take in no
  -- more events. All lanes join at once: one after the other would move the earlier batches again
  -- for each. A lane of another type does not stop it.
  function self.forget(token)
    local first, others = lane_of_subscriber(token), {}
    for lane = 0, self.count(token) - 1 do
      redis.call('DEL', current_of_lane_key(token, lane))
      local key = lane_of_subscriber(token, lane)
      if lane > 0 and redis.call('EXISTS', key) == 1 then table.insert(others, key) end
    end
    if others[1] then
      redis.pcall('ZUNIONSTORE', first, 1 + #others, first, unpack(others))
      redis.call('UNLINK', unpack(others))
      LANES[first] = nil
    end
    redis.call('HDEL', plans_key(), token)
  end

  -- Forgets that there were more lanes, since no batch is left.
  function self.forget_past(token)
    if redis.call('HDEL', options_key(token), 'past_lanes') == 1 then
      options_versions().drop(token)
    end
  end

  -- Adopts lanes that earlier releases have recorded for a subscriber. Each change began a
  -- generation, with lanes of its own in the queue: the last by its name, and the ones before as
  -- name/number of lanes/number of batches. Batches that stand there join the lane of the same
  -- number.
  function self.adopt(token)
    local found = read(token)
    local lanes = tonumber(found[1]) or 1
    local all = (found[4] or '') .. ' ' .. (found[3] or '') .. '/' .. lanes .. '/0'
    local count = math.max(lanes, tonumber(found[2]) or 1)
    for name, number in string.gmatch(all, '([^/ ]*)/(%d+)/%d+') do
      count = math.max(count, tonumber(number))
      for lane = 0, (name == '' and 0 or number) - 1 do
        local from = lane_key('batch', token .. '/' .. name .. '/' .. lane)
        local to = lane_of_subscriber(token, lane)
        if redis.call('EXISTS', from) == 1 then
          redis.call('ZUNIONSTORE', to, 2, to, from)
          redis.call('UNLINK', from)
          LANES[to] = nil
        end
      end
    end
    redis.call('HDEL', options_key(token), 'generation', 'older', 'passing')
    if count > lanes then redis.call('HSET', options_key(token), 'past_lanes', count) end
    if lanes == 1 then redis.call('HDEL', plans_key(), token) end
    self.wake(token, noted_max_in_flight())
  end

  return self
end
