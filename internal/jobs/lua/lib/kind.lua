-- The functions that the queue's scripts call for jobs: see KINDS in the queue's lib/jobs.lua. The
-- settings are {a random number from 0 to below 1}.

-- µs: a service that asked for time gets one job in this time, until it takes one.
local PROBE = 500000
-- ms, until an entry comes up again that found no thread for its standing.
local STANDING_WAIT = 100
-- µs, by which clocks may differ: a new job that comes up so much before its time is taken.
local EARLY = 1000000

local function type_of(job)
  local type = read_type(job.type)
  if not type then error('there is no type ' .. job.type, 0) end
  return type
end

-- The job of an entry that a worker gives up, nil if it is not this worker's any more.
local function released(entry)
  local job = read_job(entry.arg)
  if not job or job.worker ~= entry.worker then return nil end
  job.released = true
  return job
end

-- Reschedules an entry that has its turn, with so many before it, for a time (ms), as its type does
-- not go on. Of many a few come then, and others ever later: it is enough that one sees when the
-- type goes on.
local function look_again(entry, type, turn, time, step)
  local waiting = turn - in_flight_of(type.lane)
  put_off(entry, time + step * (2 ^ math.min(waiting, 12) - 1), ahead_of(waiting))
end

-- Makes an entry that has its turn wait if its type, or the host of its service, is full.
local function waits_for_thread(entry, type, turn)
  if not entry.full then return false end
  local waiting = turn - in_flight_of(type.lane)
  return put_off_if_full(entry, type.name, waiting, nil, type.url, ahead_of(waiting))
end

-- The values that runReply of kind.go names.
local function payload_of(job, type)
  return {
    type.name, -- type
    job.once and 'at_most_once' or 'at_least_once', -- strategy
    job.attempts, -- attempts
    type.attempts, -- max_attempts
    redis.call('GET', data_of(job)), -- data
    type.url, -- url
    type.timeout, -- timeout
    type.holds, -- holds
    type.standing, -- standing
    exact(job.place), -- sequence
    job.traceparent, -- traceparent
  }
end

-- Notes the result of an attempt, as reported by the worker that made it: see the result of
-- complete.
local function note_try(job, outcome, result)
  job.try = {
    outcome = outcome, error = result[2], status = result[5], excerpt = result[6],
    public = result[7],
  }
end

-- Ends a job that came up for it, and takes its entry off the queue. Returns the results of take.
local function end_taken(entry, type, job, status, attempts, now, reason)
  archive(type, job, status, attempts, now, nil, reason)
  discard(entry)
  return nil, { job.id, type.name, status, reason }
end

-- Takes an entry whose job has been handed out before.
local function take_again(entry, type, job, now)
  if entry.held and job.worker == entry.worker then return payload_of(job, type) end
  if job.worker ~= '' then
    if job.worker ~= entry.worker
      and redis.call('LINDEX', pending_key(entry.queue, job.worker), '-1') == entry.job then
      redis.call('RPOP', pending_key(entry.queue, entry.worker)) -- left by a step
      return nil
    end
    if job.once then
      redis.call('HSET', job_key(job.id), 'ended', job.attempts)
      job.try = { outcome = 'failed', error = 'the worker died' }
      return end_taken(entry, type, job, 'failed', job.attempts - 1, now, 'the worker died')
    end
    redis.call('HSET', job_key(job.id), 'worker', entry.worker, 'hold', type.hold)
    return payload_of(job, type)
  end
  if job.deadline > now then
    put_off(entry, due(job.deadline))
    return nil
  end
  redis.call('HSET', job_key(job.id), 'ended', job.attempts)
  redis.call('RPOP', pending_key(entry.queue, entry.worker))
  local reason = 'no report before the deadline'
  job.try = { outcome = 'failed', error = reason }
  local status = fail_attempt(type, job, false, now, tonumber(entry.settings[1]), nil, reason)
  return nil, { job.id, type.name, status, reason }
end

KINDS.job = {
  queue = QUEUE,
  exists = function(id)
    local status = redis.call('HGET', job_key(id), 'status')
    return status == 'queued' or status == 'in-progress'
  end,
  take = function(entry)
    local job = read_job(entry.arg)
    if not job or not job.open then
      discard(entry)
      return nil
    end
    local type, now = type_of(job), tonumber(entry.now) * 1000
    if job.status == 'in-progress' then return take_again(entry, type, job, now) end
    if job.expires_at > 0 and job.expires_at <= now then
      return end_taken(entry, type, job, 'expired', job.attempts, now, '')
    end
    local early = job.attempts == type.attempts and EARLY or 0
    if job.run_after > now + early then
      put_off(entry, due(job.run_after))
      return nil
    end
    local turn = has_turn(type.lane, job.entry, job.place, type.max)
    if not turn then
      put_off(entry, wait_until(job.expires_at, now))
    elseif type.pull then
      put_off(entry, wait_until(job.expires_at, now))
      announce(type)
    elseif type.held_until > now then
      look_again(entry, type, turn, math.ceil(type.held_until / 1000), PROBE / 1000)
    elseif type.standing < entry.min_standing then
      look_again(entry, type, turn, entry.now + STANDING_WAIT, STANDING_WAIT)
    elseif not waits_for_thread(entry, type, turn) then
      if type.holds > 0 then
        type.held_until = now + PROBE
        redis.call('HSET', job_type_key(type.name), 'held_until', exact(type.held_until))
      end
      begin_in_lane(type.lane, job.entry, job.place)
      redis.call('HSET', job_key(job.id), 'status', 'in-progress', 'worker', entry.worker,
        'ended', '', 'hold', type.hold, 'updated_at', exact(now), 'started', exact(now))
      wake_others(type)
      return payload_of(job, type)
    end
    return nil
  end,
  -- The result is {'succeeded' or 'failed', reason, standing, '1' if the service reported that it
  -- failed, the status of its answer ('0' for none), the beginning of that, '1' if clients may see
  -- these}.
  complete = function(entry)
    local job, result = released(entry), entry.result
    if not job then return end
    local type, now = type_of(job), tonumber(entry.now) * 1000
    local succeeded = result[1] == 'succeeded'
    job.completed = true
    if not succeeded then note_try(job, 'failed', result) end
    note_answer(type, job, succeeded or result[4] == '1', tonumber(result[3]))
    archive(type, job, succeeded and 'succeeded' or 'failed',
      succeeded and job.attempts or job.attempts - 1, now,
      (succeeded or result[4] == '1') and job.attempts .. ' ' .. result[1] or nil, result[2])
  end,
  -- The result is {'accepted', 'failed', 'held', 'unsent' or 'again', reason, standing, as above};
  -- the queue has scheduled the entry.
  retry = function(entry)
    local job, result = released(entry), entry.result
    if not job then return end
    local type, now, outcome = type_of(job), tonumber(entry.now) * 1000, result[1]
    local time, standing = entry.time * 1000, tonumber(result[3])
    -- One that is accepted for want of an answer was perhaps not taken.
    local took = (outcome == 'accepted' and standing == 2) or result[4] == '1'
    if outcome ~= 'unsent' then note_answer(type, job, took, standing) end
    if outcome == 'held' or outcome == 'failed' then note_try(job, outcome, result) end
    if outcome == 'again' then note_try(job, 'failed', result) end
    if outcome == 'held' then hold_back(type, job, time, type.holds + 1) end
    if outcome == 'unsent' then hold_back(type, job, time, math.max(type.holds, 1)) end
    if outcome == 'accepted' then
      local deadline = math.max(time, job.deadline)
      if deadline > time then
        redis.call('ZADD', scheduled_key(QUEUE), due(deadline), job.entry)
      end
      redis.call('HSET', job_key(job.id), 'worker', '', 'deadline', exact(deadline),
        'updated_at', exact(now))
      if result[2] ~= '' then redis.call('HSET', job_key(job.id), 'reason', result[2]) end
    elseif job.once and outcome ~= 'unsent' then
      redis.call('ZREM', scheduled_key(QUEUE), job.entry)
      archive(type, job, 'failed', job.attempts - 1, now, nil, result[2])
    elseif outcome == 'failed' then
      requeue(type, job, job.attempts - 1, time, now,
        result[4] == '1' and job.attempts .. ' failed' or nil, result[2])
    else -- it costs no attempt
      return_to_lane(type.lane, QUEUE, job.entry, job.place, type.max, time / 1000)
      redis.call('HSET', job_key(job.id), 'status', 'queued', 'worker', '', 'deadline', '0',
        'updated_at', exact(now), unpack(notes_of(type, job, now, result[2])))
    end
  end,
}
