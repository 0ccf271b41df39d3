-- A job's record, and the steps that change it. Every function that ends or moves a job works
-- wherever its entry is: scheduled, instant, or pending at a worker. An instant entry stays there:
-- the worker that takes it reads the record.

-- The record of a job, nil if there is none.
local function read_job(id)
  local found = redis.call('HMGET', job_key(id), 'type', 'status', 'attempts', 'sequence',
    'run_after', 'expires_at', 'worker', 'deadline', 'reported', 'ended', 'traceparent', 'once',
    'hold', 'data', 'started', 'tries', 'noted')
  if not found[1] then return nil end
  return {
    id = id, entry = entry_of(id), type = found[1], status = found[2],
    attempts = tonumber(found[3]), place = tonumber(found[4]), run_after = tonumber(found[5] or 0),
    expires_at = tonumber(found[6]) or 0, worker = found[7] or '',
    deadline = tonumber(found[8]) or 0, reported = found[9] or '', ended = tonumber(found[10]),
    traceparent = found[11] or '', once = found[12] == '1', expires = found[6] or '0',
    hold = tonumber(found[13]) or 0, data_id = found[14] or nil,
    started = found[15] or '', tries = found[16] or '', noted = tonumber(found[17]) or 0,
    open = found[2] == 'queued' or found[2] == 'in-progress',
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

-- The score of an entry that comes up at a time (µs), behind all others of the same ms: so jobs
-- that are enqueued for the same time come in order. See ahead_of for the steps. `last` has the
-- highest score by ms, as far as the step has read or given it.
local function score_behind(time, last)
  local ms = math.ceil(time / 1000)
  if not last[ms] then
    local found = redis.call('ZREVRANGEBYSCORE', scheduled_key(QUEUE), '(' .. exact(ms),
      '(' .. exact(ms - 1), 'WITHSCORES', 'LIMIT', 0, 1)
    last[ms] = tonumber(found[2]) or ms - 1
  end
  last[ms] = math.min(last[ms] + 1 / 4096, ms)
  return string.format('%.4f', last[ms])
end

local CHUNK = 1000 -- arguments of a command

-- Runs a command on a key with many arguments, in chunks.
local function in_chunks(command, key, arguments)
  for i = 1, #arguments, CHUNK do
    redis.call(command, key, unpack(arguments, i, math.min(i + CHUNK - 1, #arguments)))
  end
end

-- Stores the data of jobs. An earlier job of the same id may still hold the key, because copies
-- share its data. Then the new job's data goes under another id.
local function put_data(jobs)
  local count = CHUNK / 2
  for first = 1, #jobs, count do
    local data, last = {}, math.min(first + count - 1, #jobs)
    for i = first, last do append(data, job_data_key(jobs[i].id), jobs[i].data) end
    if redis.call('MSETNX', unpack(data)) == 0 then
      for i = first, last do
        local job = jobs[i]
        if redis.call('SETNX', job_data_key(job.id), job.data) == 0 then
          job.data_id = job.id .. ':' .. job.at
          redis.call('SET', job_data_key(job.data_id), job.data)
          redis.call('SADD', job_copies_key(job.data_id), job.id)
        end
      end
    end
  end
end

-- Writes the record of a new job. It omits fields that most jobs do not need, and fields equal to
-- created_at: so an array of jobs takes half the time.
local function put_record(type, job, traceparent, time)
  local record = {
    'type', type.name, 'status', 'queued', 'attempts', type.attempts, 'sequence', job.at,
    'created_at', time,
  }
  if job.run_after ~= '0' then append(record, 'run_after', job.run_after) end
  if job.expires_at ~= '0' then append(record, 'expires_at', job.expires_at) end
  if type.once then append(record, 'once', '1') end
  if traceparent ~= '' then append(record, 'traceparent', traceparent) end
  if job.data_id then append(record, 'data', job.data_id) end
  redis.call('HSET', job_key(job.id), unpack(record))
end

-- Adds jobs to a type. Each has its id, place (the next numbers of the type, in order), run_after
-- and expires_at: texts, '0' where there is none, because a number may not have all digits of a
-- time far away. Its data is stored already or, without a data_id, is stored here. Services that
-- fetch jobs take them from their lane, so these all wait. Commands: 8, 1 for each job, and 1 for
-- each ms at which jobs come up later.
local function add_jobs(type, jobs, traceparent, now)
  local time, last = exact(now), {}
  local standing, open, entries, instant, later = {}, {}, {}, {}, {}
  for _, job in ipairs(jobs) do
    job.entry, job.at = entry_of(job.id), exact(job.place)
    job.is_due = job.run_after == '0' or tonumber(job.run_after) <= now
    if job.is_due then append(standing, job.at, job.entry) end
    append(open, job.at, job.id)
    table.insert(entries, job.entry)
  end
  -- A list that is none fails here, before a job is anywhere else.
  local before = 0
  if #standing > 0 then
    in_chunks('ZADD', type.lane, standing)
    before = redis.call('ZCARD', type.lane) - #standing / 2
  end
  in_chunks('ZADD', open_jobs_key(type.name), open)
  if not jobs[1].data_id then put_data(jobs) end
  in_chunks('SADD', jobs_index_key(QUEUE), entries)
  local turn = false
  for _, job in ipairs(jobs) do
    put_record(type, job, traceparent, time)
    local in_turn = job.is_due and before < type.max
    if job.is_due then before = before + 1 end
    turn = turn or in_turn
    if not job.is_due then
      append(later, score_behind(tonumber(job.run_after), last), job.entry)
    elseif in_turn and not type.pull then
      table.insert(instant, job.entry)
    else
      append(later, wait_until(tonumber(job.expires_at), now), job.entry)
    end
  end
  in_chunks('ZADD', scheduled_key(QUEUE), later)
  in_chunks('LPUSH', instant_key(QUEUE), instant)
  if turn and type.pull then announce(type) end
end

-- Where the data of a job is.
local function data_of(job) return job_data_key(job.data_id or job.id) end

-- Notes that a new job shares data, which the job that has it says too from now on. Returns its id.
local function share_data(job, copy)
  local data_id = job.data_id or job.id
  if not job.data_id then redis.call('HSET', job_key(job.id), 'data', data_id) end
  redis.call('SADD', job_copies_key(data_id), job.id, copy)
  return data_id
end

-- Removes data, and returns how many bytes it has.
local function remove_data_at(data_id)
  local bytes = redis.pcall('STRLEN', job_data_key(data_id))
  redis.call('DEL', job_data_key(data_id))
  return tonumber(bytes) or 0
end

-- Removes the data of a job that is removed, unless others share it. Returns the bytes of the data
-- and of the notes on its attempts, and whether the job was to be tried once.
local function remove_data(id)
  local found = redis.pcall('HMGET', job_key(id), 'data', 'noted', 'once')
  if found.err then return remove_data_at(id), false end
  local data_id, noted, once = found[1], tonumber(found[2]) or 0, found[3] == '1'
  if not data_id then return noted + remove_data_at(id), once end
  redis.call('SREM', job_copies_key(data_id), id)
  if redis.call('EXISTS', job_copies_key(data_id)) == 1 then return noted, once end
  return noted + remove_data_at(data_id), once
end

-- ms: after its removal, a job that was to be tried once is not enqueued again for so long.
local REMOVED_TTL = 86400000

-- The ids, among some, whose jobs were removed less than REMOVED_TTL ago, as a set. It costs no
-- command unless the jobs of the type are tried once.
local function removed_among(type, ids, now)
  local removed = {}
  for first = 1, type.once and #ids or 0, CHUNK do
    local keys = {}
    for i = first, math.min(first + CHUNK - 1, #ids) do
      keys[#keys + 1] = removed_job_key(type.name, ids[i])
    end
    for i, time in ipairs(redis.call('MGET', unpack(keys))) do
      if (tonumber(time or '') or 0) * 1000 > now then removed[ids[first + i - 1]] = true end
    end
  end
  return removed
end

local MAX_TRIES = 20 -- attempts that are kept of a job
local MAX_TRY_ERROR = 1024 -- bytes of an error among these

-- A text without the characters that separate attempts, and their fields.
local function field_of(text) return (string.gsub(text or '', '[\29\30]', ' ')) end

-- The kept attempts of a job, the latest first, beginning with job.try if an attempt has just
-- ended: {attempt, unless it is the job's; outcome, status, error, excerpt, '1' for an address
-- whose answers clients may read}.
local function tries_of(job, now)
  local try = job.try
  if not try then return job.tries end
  local all = { table.concat({
    exact(try.attempt or job.attempts), job.started, exact(now), try.outcome, try.status or '',
    try.public or '1', field_of(string.sub(try.error or '', 1, MAX_TRY_ERROR)),
    field_of(try.excerpt),
  }, '\30') }
  for one in string.gmatch(job.tries, '[^\29]+') do
    if #all < MAX_TRIES then table.insert(all, one) end
  end
  return table.concat(all, '\29')
end

-- The fields of a record that say why attempts failed, and the last one's reason. Notes of attempts
-- are charged to the account of the type's owner. A job without failed attempts has none, and costs
-- no command.
local function notes_of(type, job, now, reason)
  local fields, tries = { 'reason', reason or '' }, tries_of(job, now)
  local bytes = #tries + (job.try and #fields[2] or 0)
  if bytes ~= job.noted then keep(type, account_of(type.owner), bytes - job.noted) end
  if job.try or bytes ~= job.noted then
    append(fields, 'tries', tries)
    append(fields, 'noted', exact(bytes))
  end
  return fields
end

-- Takes the entry of a job from the worker that has it pending, if one has. A worker that completes
-- it finds that it is not its own any more. One that completes it now has given it up already.
local function take_back(job)
  if job.worker ~= '' and not job.released then
    redis.call('LREM', pending_key(QUEUE, job.worker), '-1', job.entry)
  end
end

-- The accepted reports on a job, the latest first, with one more if it is given. Only the last ones
-- are kept: a service that repeats a report does so soon.
local function with_report(job, reported)
  if not reported then return job.reported end
  return string.sub(reported .. ',' .. job.reported, 1, 100)
end

-- Puts a job into the archive of its type, with an outcome. Reported is the report that said so,
-- nil if none did; reason says why it failed.
local function enter_archive(type, job, status, attempts, now, reported, reason)
  local at = exact(next_number(type, now))
  redis.call('HSET', job_key(job.id), 'status', status, 'attempts', attempts, 'archived_at', at,
    'updated_at', exact(now), 'worker', '', 'deadline', '0', 'reported', with_report(job, reported),
    unpack(notes_of(type, job, now, reason)))
  redis.call('ZADD', archived_jobs_key(type.name, status), at, job.id)
end

-- Removes archived jobs of a type, by its name, from a list, which is their only one. There may be
-- no type. Jobs that were to be tried once are remembered: callers may send their request again.
local function remove_archived(name, type, list, ids, now)
  local bytes, remembered = 0, 0
  local time = math.floor(now / 1000) + REMOVED_TTL
  for _, id in ipairs(ids) do
    local size, once = remove_data(id)
    bytes = bytes + size + JOB_BYTES * redis.call('DEL', job_key(id))
    redis.call('ZREM', list, id)
    if once then
      redis.call('SET', removed_job_key(name, id), exact(time), 'PX', REMOVED_TTL)
      remembered = remembered + REMOVED_BYTES
    end
  end
  if not type or bytes + remembered == 0 then return end
  local account = account_of(type.owner)
  keep(type, account, -bytes)
  if remembered > 0 then
    charge(account, remembered)
    discharge_after(account, remembered, time)
  end
end

-- Archives a job that has not ended: see enter_archive.
local function archive(type, job, status, attempts, now, reported, reason)
  if not job.completed then redis.call('SREM', jobs_index_key(QUEUE), job.entry) end
  if job.worker == '' then redis.call('ZREM', scheduled_key(QUEUE), job.entry) end
  take_back(job)
  leave(type, job.entry)
  redis.call('ZREM', open_jobs_key(type.name), job.id)
  enter_archive(type, job, status, attempts, now, reported, reason)
end

-- Requeues a job for a time, with so many attempts left.
local function requeue(type, job, attempts, run_after, now, reported, reason)
  take_back(job)
  leave(type, job.entry)
  redis.call('ZADD', scheduled_key(QUEUE), due(run_after), job.entry)
  redis.call('HSET', job_key(job.id), 'status', 'queued', 'attempts', attempts,
    'run_after', exact(run_after), 'updated_at', exact(now), 'worker', '', 'deadline', '0',
    'reported', with_report(job, reported), unpack(notes_of(type, job, now, reason)))
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

-- A job as it is shown: its id, the fields of its record, with where its data is, and its data.
local function show_job(id)
  local fields = redis.call('HMGET', job_key(id), 'type', 'status', 'attempts', 'sequence',
    'run_after', 'expires_at', 'created_at', 'updated_at', 'deadline', 'archived_at', 'reason',
    'data', 'started')
  return { id, fields, redis.call('GET', job_data_key(fields[12] or id)) }
end
