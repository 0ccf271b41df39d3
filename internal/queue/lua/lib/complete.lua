-- Ending an entry that a worker has pending.

-- Takes an entry off those that a worker has pending, given what read_call returns; the arguments
-- from there on are the job, how many values its result has, and these. Returns the entry, nil if
-- it was not the worker's (any more), and the index of the next argument. This write takes no
-- memory, so a full Redis does not refuse it.
local function release(call, first)
  local job, next = ARGV[first], first + 2 + ARGV[first + 1]
  local result = { unpack(ARGV, first + 2, next - 1) } -- before the job is taken: too many fail
  local kind, name, arg = kind_of(call.queue, job)
  if kind and kind.holds and not kind.holds(arg, result) then return nil, next end
  local removed = redis.call('LREM', pending_key(call.queue, call.worker), '-1', job)
  if removed == 0 then return nil, next end
  return {
    queue = call.queue, worker = call.worker, job = job, arg = arg, kind = name, now = call.now,
    settings = call.settings[name], result = result,
  }, next
end

-- Completes an entry that was released.
local function complete(entry)
  redis.call('SREM', jobs_index_key(entry.queue), entry.job)
  local kind = KINDS[entry.kind]
  if kind then kind.complete(entry) end
end

-- Has an entry that was released run again at a time (ms). If what it is about is gone, it is done.
local function retry(entry, time)
  local kind = KINDS[entry.kind]
  if kind and not kind.exists(entry.arg) then return complete(entry) end
  redis.call('ZADD', scheduled_key(entry.queue), time, entry.job)
  entry.time = tonumber(time)
  if kind then kind.retry(entry) end
end
