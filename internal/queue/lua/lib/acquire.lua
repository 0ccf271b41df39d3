-- Taking an entry, with its payload, for a worker.

local MAX_SKIPPED = 100 -- entries put off or discarded by one call, so that it stays short
local POISONED_FOR = 60000 -- ms, until an entry that failed here is tried again

-- Has an entry that was taken wait until a time (ms), unless it is woken before.
local function put_off(entry, time)
  redis.call('ZADD', scheduled_key(entry.queue), milliseconds(time), entry.job)
  redis.call('RPOP', pending_key(entry.queue, entry.worker))
end

-- Removes an entry that was taken.
local function discard(entry)
  redis.call('RPOP', pending_key(entry.queue, entry.worker))
  redis.call('SREM', jobs_index_key(entry.queue), entry.job)
end

-- Notes a worker in the index of those that may have a pending job.
local function register(queue, worker, now)
  if redis.call('SADD', pending_index_key(queue), worker) == 1 then
    redis.call('HSET', workers_key(), worker, now)
  end
end

-- Takes the next entry. Call has: queue, worker, now, wait_until (ms), min_standing, settings (by
-- kind), and released, if the worker is registered and is known to have nothing pending.
-- Returns false if there is nothing to do, or {discarded, job, payload, error}: discarded is what
-- kinds have noted of entries they discarded, a list of {kind, ...}; job is false if there was none
-- to take; payload is empty for a job of no kind, and for one that failed here with an error (text)
-- and was put off.
local function acquire(call)
  local queue, worker, discarded = call.queue, call.worker, {}
  local pending = pending_key(queue, worker)
  for i = 1, MAX_SKIPPED do
    -- The worker has a job already if the reply to an earlier call was lost.
    local job = i == 1 and not call.released and redis.call('LINDEX', pending, -1)
      or redis.call('RPOPLPUSH', instant_key(queue), pending)
    if not job then break end
    local entry = {
      queue = queue, worker = worker, job = job, now = call.now, wait_until = call.wait_until,
      min_standing = call.min_standing, discarded = discarded,
    }
    local kind, ok, payload = kind_of(entry, call.settings), true, {}
    if kind then ok, payload = pcall(kind.take, entry) end
    if not ok then -- it met a key that is not of its type, which must not stop the worker
      put_off(entry, entry.now + POISONED_FOR)
      local reason = type(payload) == 'table' and payload.err or tostring(payload)
      return { discarded, job, {}, reason }
    end
    if payload then
      if not call.released then register(queue, worker, call.now) end
      return { discarded, job, payload, '' }
    end
  end
  if #discarded > 0 then return { discarded, false, {}, '' } end
  return false
end

-- Reads the arguments of acquire, from the given one on: now (ms), when an entry that waits comes
-- up by itself at the latest (ms), the least standing of a lane, and the settings of the kinds: of
-- each its name, how many it has, and these.
local function read_acquire(queue, worker, first)
  local call = {
    queue = queue, worker = worker, now = tonumber(ARGV[first]),
    wait_until = tonumber(ARGV[first + 1]), min_standing = tonumber(ARGV[first + 2]), settings = {},
  }
  local i = first + 3
  while i <= #ARGV do
    local settings = {}
    for k = 1, tonumber(ARGV[i + 1]) do settings[k] = ARGV[i + 1 + k] end
    call.settings[ARGV[i]] = settings
    i = i + 2 + #settings
  end
  return call
end
