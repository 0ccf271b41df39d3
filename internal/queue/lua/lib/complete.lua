-- Ending an entry that a worker has pending.

-- Takes an entry off the ones that a worker has pending. `call` comes from read_call; the arguments
-- from `first` on are the job, how many values its result has, and these. Returns the entry, nil if
-- it was not the worker's (any more), and the index of the next argument. This write takes no
-- memory, so a full Redis does not refuse it.
local function release_from(worker, call, first)
  local job, next = ARGV[first], first + 2 + ARGV[first + 1]
  local result = { unpack(ARGV, first + 2, next - 1) } -- before the job is taken: too many fail
  local kind, name, arg = kind_of(call.queue, job)
  if kind and kind.holds and not kind.holds(arg, result) then return nil, next end
  local removed = redis.call('LREM', pending_key(call.queue, worker), '-1', job)
  if removed == 0 then return nil, next end
  return {
    queue = call.queue, worker = worker, job = job, arg = arg, kind = name, now = call.now,
    settings = call.settings[name], result = result,
  }, next
end

-- Releases entries taken ahead with an entry. The arguments are: how many were done, and for each
-- the worker and the arguments of release_from; until when the others wait at the latest (ms), how
-- many these are, and for each the worker and the job. Returns the entries that were done, and the
-- index of the next argument. call.spares is set to the workers that have nothing pending any more,
-- in order.
local function release_ahead(call, first)
  local entries, next = {}, first + 1
  call.spares = {}
  for _ = 1, tonumber(ARGV[first]) do
    local entry
    entry, next = release_from(ARGV[next], call, next + 1)
    if entry then
      table.insert(entries, entry)
      table.insert(call.spares, entry.worker)
    end
  end
  local last = next + 1 + 2 * ARGV[next + 1]
  for i = next + 2, last, 2 do
    local worker, job = ARGV[i], ARGV[i + 1]
    if redis.call('LREM', pending_key(call.queue, worker), '-1', job) == 1 then
      table.insert(call.spares, worker)
      give_back(call, job, ARGV[next])
    end
  end
  return entries, last + 1
end

-- Releases the entry of a worker, and the entries taken ahead with it. The arguments are
-- release_from's, then '1' if entries were taken ahead, followed by release_ahead's, else '0'.
-- Returns the entry, nil if it was not the worker's (any more); the index of the next argument; and
-- the entries that were done after it, nil if none were taken ahead.
local function release(call, first)
  local entry, next = release_from(call.worker, call, first)
  if ARGV[next] == '0' then return entry, next + 1 end
  local others
  others, next = release_ahead(call, next + 1)
  return entry, next, others
end

-- Completes an entry that was released.
local function complete(entry)
  redis.call('SREM', jobs_index_key(entry.queue), entry.job)
  local kind = KINDS[entry.kind]
  if kind then kind.complete(entry) end
end

-- Completes an entry that was released, nil if it was not the worker's, and the entries after it.
local function complete_all(entry, others)
  if entry then table.insert(others, 1, entry) end
  if #others == 0 then return end
  local jobs = {}
  for i, other in ipairs(others) do jobs[i] = other.job end
  redis.call('SREM', jobs_index_key(others[1].queue), unpack(jobs))
  KINDS[others[1].kind].complete_all(others)
end

-- Completes the entries that release returned. Returns whether the entry was the worker's.
local function complete_released(entry, others)
  if others then complete_all(entry, others) elseif entry then complete(entry) end
  return entry ~= nil
end

-- Reschedules an entry that was released for a time (ms). If its subject is gone, the entry is
-- completed.
local function retry(entry, time)
  local kind = KINDS[entry.kind]
  if kind and not kind.exists(entry.arg) then return complete(entry) end
  redis.call('ZADD', scheduled_key(entry.queue), time, entry.job)
  entry.time = tonumber(time)
  if kind then kind.retry(entry) end
end
