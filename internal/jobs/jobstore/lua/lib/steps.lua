-- A job's record, and what becomes of a job. Every function that ends or moves a job works wherever
-- its entry is: scheduled, instant, or pending at a worker. What is instant stays there: taking it
-- goes by the record.

-- The record of a job, nil if there is none.
local function read_job(id)
  local found = redis.call('HMGET', job_key(id), 'type', 'status', 'attempts', 'sequence',
    'run_after', 'expires_at', 'worker', 'deadline', 'reported', 'ended', 'traceparent', 'once',
    'hold')
  if not found[1] then return nil end
  return {
    id = id, entry = entry_of(id), type = found[1], status = found[2],
    attempts = tonumber(found[3]), place = tonumber(found[4]), run_after = tonumber(found[5]),
    expires_at = tonumber(found[6]) or 0, worker = found[7] or '',
    deadline = tonumber(found[8]) or 0, reported = found[9] or '', ended = tonumber(found[10]),
    traceparent = found[11] or '', once = found[12] == '1', expires = found[6],
    hold = tonumber(found[13]) or 0, open = found[2] == 'queued' or found[2] == 'in-progress',
  }
end

local function append(list, field, value)
  list[#list + 1] = field
  list[#list + 1] = value
end

-- Until when (ms) a job waits for its turn: it comes up by itself when it expires, if it does.
local function wait_until(expires_at, now)
  local time = math.floor(now / 1000) + WAIT
  if expires_at > 0 then time = math.min(time, math.ceil(expires_at / 1000)) end
  return exact(time)
end

-- The score of an entry that comes up at a time (µs), behind those that come up in the same ms: so
-- jobs that are enqueued for the same time come in order. See ahead_of for the steps.
local function score_behind(time)
  local ms = math.ceil(time / 1000)
  local last = redis.call('ZREVRANGEBYSCORE', scheduled_key(QUEUE), '(' .. exact(ms),
    '(' .. exact(ms - 1), 'WITHSCORES', 'LIMIT', 0, 1)
  return string.format('%.4f', math.min((tonumber(last[2]) or ms - 1) + 1 / 4096, ms))
end

-- Adds a job to a type, with its latest number as its place. Times are texts, '0' where there is
-- none: a number may not have all digits of a time far away. Who fetches jobs takes them from their
-- lane, so these all wait.
local function add_job(type, id, data, run_after, expires_at, traceparent, place, now)
  local entry, time, at = entry_of(id), exact(now), exact(place)
  if run_after == '0' then run_after = time end
  local is_due, turn = tonumber(run_after) <= now, false
  -- A list that is none fails here, before the job is anywhere else.
  if is_due then turn = stand_last(type.lane, entry, place) < type.max end
  redis.call('ZADD', open_key(type.name), at, id)
  local record = {
    'type', type.name, 'status', 'queued', 'attempts', type.attempts, 'sequence', at,
    'run_after', run_after, 'expires_at', expires_at, 'created_at', time, 'updated_at', time,
  }
  if type.once then append(record, 'once', '1') end
  if traceparent ~= '' then append(record, 'traceparent', traceparent) end
  redis.call('HSET', job_key(id), unpack(record))
  redis.call('SET', data_key(id), data)
  redis.call('SADD', jobs_index_key(QUEUE), entry)
  if not is_due then
    redis.call('ZADD', scheduled_key(QUEUE), score_behind(tonumber(run_after)), entry)
  elseif turn and not type.pull then
    redis.call('LPUSH', instant_key(QUEUE), entry)
  else
    redis.call('ZADD', scheduled_key(QUEUE), wait_until(tonumber(expires_at), now), entry)
    if turn then announce(type) end
  end
end

-- Takes the entry of a job from the worker that has it pending, if one has. A worker that completes
-- it finds that it is not its own any more. One that completes it now has given it up already.
local function take_back(job)
  if job.worker ~= '' and not job.released then
    redis.call('LREM', pending_key(QUEUE, job.worker), '-1', job.entry)
  end
end

-- The reports on a job that were accepted, the latest first, with one more if it is given. Those of
-- the last attempts are enough: who repeats a report does it soon.
local function with_report(job, reported)
  if not reported then return job.reported end
  return string.sub(reported .. ',' .. job.reported, 1, 100)
end

-- Puts a job into the archive of its type, with an outcome. Reported is the report that said so,
-- nil if none did; reason says why, without one.
local function enter_archive(type, job, status, attempts, now, reported, reason)
  local at = exact(next_number(type, now))
  redis.call('HSET', job_key(job.id), 'status', status, 'attempts', attempts, 'archived_at', at,
    'updated_at', exact(now), 'worker', '', 'deadline', '0', 'reported', with_report(job, reported),
    'reason', reason or '')
  redis.call('ZADD', archive_key(type.name, status), at, job.id)
end

-- Removes archived jobs from a list, which is their only one.
local function remove_archived(list, ids)
  for _, id in ipairs(ids) do
    redis.call('DEL', job_key(id), data_key(id))
    redis.call('ZREM', list, id)
  end
end

-- Archives a job that has not ended: see enter_archive.
local function archive(type, job, status, attempts, now, reported, reason)
  if not job.completed then redis.call('SREM', jobs_index_key(QUEUE), job.entry) end
  if job.worker == '' then redis.call('ZREM', scheduled_key(QUEUE), job.entry) end
  take_back(job)
  leave(type, job.entry)
  redis.call('ZREM', open_key(type.name), job.id)
  enter_archive(type, job, status, attempts, now, reported, reason)
end

-- Has a job be tried again at a time, with so many attempts left.
local function requeue(type, job, attempts, run_after, now, reported, reason)
  take_back(job)
  leave(type, job.entry)
  redis.call('ZADD', scheduled_key(QUEUE), due(run_after), job.entry)
  redis.call('HSET', job_key(job.id), 'status', 'queued', 'attempts', attempts,
    'run_after', exact(run_after), 'updated_at', exact(now), 'worker', '', 'deadline', '0',
    'reported', with_report(job, reported), 'reason', reason or '')
end

-- How long (µs) a job waits that has so many attempts left, as jobs.Backoff.
local function backoff(type, left, chance)
  local failures = math.min(math.max(type.attempts - left, 1), 12)
  return math.floor(math.min(2 ^ failures, 3600) * (1 - chance / 5) * 1000000)
end

-- Ends an attempt that failed. Final says that there is to be no other. Returns the job's status.
local function fail_attempt(type, job, final, now, chance, reported, reason)
  local left = job.attempts - 1
  if final or left < 1 or job.once then
    archive(type, job, 'failed', left, now, reported, reason)
    return 'failed'
  end
  requeue(type, job, left, now + backoff(type, left, chance), now, reported, reason)
  return 'queued'
end

-- A job as it is shown: its id, the fields of its record and its data.
local function show_job(id)
  return {
    id,
    redis.call('HMGET', job_key(id), 'type', 'status', 'attempts', 'sequence', 'run_after',
      'expires_at', 'created_at', 'updated_at', 'deadline', 'archived_at', 'reason'),
    redis.call('GET', data_key(id)),
  }
end
