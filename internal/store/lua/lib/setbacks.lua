-- What happens to batches that cannot be delivered at once.

-- A script that needs these functions creates them: Redis creates each function anew at every run,
-- and most runs need none of these.
local function setbacks()
  local self = {}
  local OUTAGE = 10000 -- ms of refusals without a success, after which the batches may be innocent
  local STATE_TTL = 2 * 86400000 -- ms, for a state that stays if its batch was removed from outside
  -- ms, from the retry of a refused batch to that of another: shorter if there are so many that a
  -- round would take longer than ROUND
  local RETRY_EVERY, MIN_RETRY_EVERY, ROUND = 1000, 50, 50000
  local MAX_RETRY_PAUSE = 30000 -- ms, for one that has failed often, while another is tried
  local MAX_RELEASED = 100 -- batches released by one call, so that it stays short

  -- Relabels a batch whose token is being changed, given its list. Returns its token now.
  function self.relabel(bid, batch)
    local holder = holder_of(batch[1])
    if holder ~= batch[1] then
      redis.call('LSET', batch_key(bid), 0, holder)
      batch[1] = holder
    end
    return holder
  end

  -- Notes the name of the client whose subscriber a token is with its state, which is read anyway:
  -- one of the Ruby original has none there yet. Returns it, false if it is not known.
  function self.note_name(token)
    local name = redis.call('HGET', tokens_key(), token)
    if name then redis.call('HSET', delivery_key(token), 'name', name) end
    return name
  end

  -- Whether a token whose state has no name is a subscriber.
  function self.is_subscribed(token)
    return redis.pcall('HEXISTS', subscriber_key(token), 'callback') == 1
  end

  -- Until when (ms) a refused batch waits before it joins its lane, given; nil if it may now.
  -- Refused batches join one at a time, so that the subscriber's other batches wait for at most one
  -- of them, and only now and then, so that these seldom wait: the least often refused first. But
  -- one that is being bisected goes on, as other events are in it.
  function self.retry_at(entry, token, lane, basis)
    local bid, failed = entry.arg, failed_key(token)
    if redis.call('ZSCORE', lane, entry.job) then
      return nil -- it was chosen, or keeps its turn
    end
    local retried = redis.call('ZRANGEBYSCORE', failed, RETRIED, RETRIED, 'LIMIT', 0, 1)[1]
    local first = redis.call('ZCOUNT', failed, '-inf', '(' .. REFUSED)
    local refused = redis.call('ZCARD', failed) - first
    local every = math.min(RETRY_EVERY, math.max(MIN_RETRY_EVERY, math.floor(ROUND / refused)))
    local behind = every * (1 + redis.call('ZRANK', failed, bid) - first) -- those before it
    local other = retried and subscriber_lanes().of(token, retried, 1)
    if other and redis.call('ZSCORE', other, job_of(retried)) then
      return entry.now + math.max(math.min(MAX_RETRY_PAUSE, 100 * 2 ^ entry.failures), behind)
    end
    local last = redis.call('HGET', delivery_key(token), 'retried_at')
    local alone = (basis and basis.suspect > 0) or refused == 1
    if last and not alone and entry.now - last < every then return last + behind end
    if retried then redis.call('ZADD', failed, REFUSED, retried) end
    redis.call('ZADD', failed, RETRIED, bid)
    redis.call('HSET', delivery_key(token), 'retried_at', entry.now)
    return nil
  end

  -- Whether a refused batch gives up its turn, because its subscriber fails and another batch, that
  -- was not refused, is there to find out whether it still does.
  function self.yields(token, lane, job, max_in_flight)
    while true do
      local first = redis.call('ZRANGE', lane, 0, 1)
      local other = first[1]
      if other == job then other = first[2] end
      if not other then return false end
      if is_alive('main', other) then
        local _, _, rival = kind_of('main', other)
        if was_refused(token, rival, 1) then return false end
        lane_of(lane).last = false
        join_lane(lane, job)
        wake_lane(lane, 'main', max_in_flight)
        return true
      end
      remove_from_lane(lane, other)
    end
  end

  -- Makes the least often refused batch come up before its time: the endpoint would probably take
  -- it now. If it does the next comes up, and so on.
  function self.retry_refused(token)
    local refused = redis.pcall(
      'ZRANGEBYSCORE', failed_key(token), REFUSED, '(' .. RETRIED, 'LIMIT', 0, 1)
    local bid = refused[1]
    if bid then make_instant('main', job_of(bid)) end
    redis.call('HDEL', delivery_key(token), 'retried_at')
  end

  -- Ends the throttle of a subscriber that counts as well again, given since when it has refused
  -- batches (ms, 0 if it has not): batches that failed with the endpoint come up at once. If there
  -- are too many for one call it stays throttled, in the past, and the next success goes on.
  function self.end_throttle(token, refused_since, now)
    if refused_since > 0 and refused_since <= now - OUTAGE then self.retry_refused(token) end
    local failed = redis.pcall(
      'ZRANGEBYSCORE', failed_key(token), '-inf', '(' .. REFUSED, 'LIMIT', 0, MAX_RELEASED)
    for _, bid in ipairs(failed) do
      redis.call('ZREM', failed_key(token), bid)
      make_instant('main', job_of(bid))
    end
    if #failed == MAX_RELEASED then
      redis.call('HSET', delivery_key(token), 'throttled_until', 1, 'refusals', 0)
    else
      redis.call('HDEL', delivery_key(token), 'throttled_until', 'refusals', 'refused_since')
    end
  end

  -- The UIDs of a subscriber's batches that are in flight.
  function self.in_flight(token)
    local bids = {}
    for job in pairs(jobs_in_flight('main')) do
      local bid = batch_of('main', job)
      if bid and redis.pcall('LRANGE', batch_key(bid), 0, 0)[1] == token then
        table.insert(bids, bid)
      end
    end
    return bids
  end

  -- Records the batches of a subscriber that are in flight as it is tried anew: if they fail, that
  -- says nothing about its present state.
  function self.overtake(token)
    local bids = self.in_flight(token)
    if #bids > 0 then
      redis.call('HSET', delivery_key(token), 'overtaken', table.concat(bids, ' '))
    end
  end

  -- Whether a tried batch was recorded so. Removes it from the record, and the batches that are
  -- done.
  function self.was_overtaken(token, tried)
    local noted = redis.pcall('HGET', delivery_key(token), 'overtaken')
    if type(noted) ~= 'string' then return false end
    local found, left, held = false, {}, jobs_in_flight('main')
    for bid in string.gmatch(noted, '%S+') do
      if bid == tried then
        found = true
      elseif held[job_of(bid)] then
        table.insert(left, bid)
      end
    end
    if #left > 0 then
      redis.call('HSET', delivery_key(token), 'overtaken', table.concat(left, ' '))
    else
      redis.call('HDEL', delivery_key(token), 'overtaken')
    end
    return found
  end

  -- Records why a failed batch waits, given its header and until when its subscriber was throttled.
  -- If a batch fails with its endpoint, though that was well and the batch has failed before, the
  -- batch counts as the cause, for example because it makes the endpoint hang: it is put off like a
  -- refused one. A batch that keeps its turn stands in the lane.
  function self.note_failed(entry, token, header, throttled_until)
    local bid, failed, attempts = entry.arg, entry.result[5], tonumber(header[3]) or 0
    local before = tonumber(redis.pcall('ZSCORE', failed_key(token), bid))
    local at_fault = attempts > 1 and not throttled_until
    if failed == 'batch' or (before and before >= REFUSED) or at_fault then
      local score = keeps_turn(entry) and KEPT or refused_times(attempts)
      redis.pcall('ZADD', failed_key(token), score, bid)
      redis.call('HSETNX', delivery_key(token), 'refused_since', entry.now)
      if failed == 'batch' then change_gauge(delivery_key(token), 'refusals', '1') end
    else
      redis.pcall('ZADD', failed_key(token), failed_with_endpoint(header[2]), bid)
    end
    redis.call('PEXPIRE', failed_key(token), STATE_TTL)
  end

  -- Removes an entry whose batch is gone from its lane, so that the batches behind it come up.
  function self.lose(entry)
    local token = entry.result[6]
    if not token then return end
    local max_in_flight = tonumber(entry.settings[1])
    local lane, max = subscriber_lanes().of(holder_of(token), entry.arg, max_in_flight)
    leave_lane(lane, entry.queue, max, entry.job)
  end

  -- Removes a batch that was taken and will not be delivered. Returns the number of its events.
  function self.discard(entry, token, failures)
    local events = events_of(entry.arg)
    remove_batch(entry.arg, token, events, tonumber(entry.settings[1]), failures > 0, true)
    discard(entry)
    return events
  end

  -- Removes batches of an earlier subscription that have gone from the record.
  function self.forget_former(token)
    local noted, left = state_of(token).former or '', {}
    for bid in string.gmatch(noted, '%S+') do
      if BATCH.exists(bid) then table.insert(left, bid) end
    end
    local former = table.concat(left, ' ')
    if former == noted then return end
    if former ~= '' then
      redis.call('HSET', delivery_key(token), 'former', former)
    else
      redis.call('HDEL', delivery_key(token), 'former')
    end
    STATES[token] = nil
  end

  -- Removes a batch that was taken, if it is of an earlier subscription. Returns the number of its
  -- events then, else nil. Removes batches that are gone from the record.
  function self.discard_former(entry, token, state)
    local events = nil
    if is_former(state, entry.arg) then events = self.discard(entry, token, entry.failures) end
    self.forget_former(token)
    return events
  end

  return self
end
