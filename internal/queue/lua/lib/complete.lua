-- Ending an entry that a worker has pending.

-- Takes an entry off those that a worker has pending, given what read_call returns; the arguments
-- from there on are the job, how many values its result has, and these. Returns the entry, nil if
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

-- Releases what was taken ahead with an entry: the arguments are how many were done, and of each
-- the worker and what release_from reads; until when the others wait at the latest (ms), how many
-- these are, and of each the worker and the job. Returns the entries that were done, and the index
-- of the next argument. The workers that have nothing pending any more are call.spares, in order.
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

-- Releases the entry of a worker, and what it has taken ahead with it: the arguments are those of
-- release_from, then '1' if something was taken ahead, and if so those of release_ahead. Returns
-- the entry, nil if it was not the worker's (any more); the index of the next argument; and the
-- entries that were done after it, nil if nothing was taken ahead.
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

-- Completes an entry that was released, nil if it was not the worker's, and those after it.
local function complete_all(entry, others)
  if entry then table.insert(others, 1, entry) end
  if #others == 0 then return end
  local jobs = {}
  for i, other in ipairs(others) do jobs[i] = other.job end
  redis.call('SREM', jobs_index_key(others[1].queue), unpack(jobs))
  KINDS[others[1].kind].complete_all(others)
end

-- Completes what release returned. Returns whether the entry was the worker's.
local function complete_released(entry, others)
  if others then complete_all(entry, others) elseif entry then complete(entry) end
  return entry ~= nil
end

-- Has an entry that was released run again at a time (ms). If what it is about is gone, it is done.
local function retry(entry, time)
  local kind = KINDS[entry.kind]
  if kind and not kind.exists(entry.arg) then return complete(entry) end
  redis.call('ZADD', scheduled_key(entry.queue), time, entry.job)
  entry.time = tonumber(time)
  if kind then kind.retry(entry) end
end
