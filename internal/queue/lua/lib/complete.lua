-- Ending an entry that a worker has pending.

-- Completes an entry, or has it run again if retry_at (ms) is not '0'. Returns whether it was still
-- the worker's; if not, nothing is changed. The first write takes no memory, so a full Redis does
-- not refuse it.
local function complete(entry, settings, retry_at)
  local pending = pending_key(entry.queue, entry.worker)
  if redis.call('LREM', pending, -1, entry.job) == 0 then return false end
  local kind = kind_of(entry, settings)
  if retry_at == '0' then
    redis.call('SREM', jobs_index_key(entry.queue), entry.job)
    if kind then kind.complete(entry) end
  elseif kind and not kind.exists(entry.arg) then
    redis.call('SREM', jobs_index_key(entry.queue), entry.job)
  else
    redis.call('ZADD', scheduled_key(entry.queue), retry_at, entry.job)
    if kind then kind.retry(entry) end
  end
  return true
end

-- Reads the arguments of complete, from the given one on: the job, now (ms), when to run it again
-- (ms, 0 for never), how many values its result has, and these. Returns the entry, that time, and
-- where the arguments of acquire begin.
local function read_complete(queue, worker, first)
  local entry = {
    queue = queue, worker = worker, job = ARGV[first], now = tonumber(ARGV[first + 1]), result = {},
  }
  local values = tonumber(ARGV[first + 3])
  for k = 1, values do entry.result[k] = ARGV[first + 3 + k] end
  return entry, ARGV[first + 2], first + 4 + values
end
