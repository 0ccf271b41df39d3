-- Taking an entry, with its payload, for a worker.

local MAX_SKIPPED = 100 -- entries put off or discarded by one call, so that it stays short
local POISONED_FOR = 60000 -- ms, until an entry that failed here is tried again

-- Has an entry that was taken wait until a time (ms), unless it is woken before. Of those that wait
-- for the same one, what is further ahead (from 0 to below 1, if given) comes first.
local function put_off(entry, time, ahead)
  local score = ahead and string.format('%.4f', time - ahead) or exact(time)
  redis.call('ZADD', scheduled_key(entry.queue), score, entry.job)
  redis.call('RPOP', pending_key(entry.queue, entry.worker))
end

-- Removes an entry that was taken.
local function discard(entry)
  redis.call('RPOP', pending_key(entry.queue, entry.worker))
  redis.call('SREM', jobs_index_key(entry.queue), entry.job)
end

-- Takes the next entry, given what read_call returns; the arguments from there on are when an entry
-- that waits comes up by itself at the latest (ms), and the least standing of a lane. The worker is
-- registered; `held` is the job that it has pending, if any. Returns, each false if there is none:
--   discarded  what kinds have returned of entries they discarded, a list of {kind, list}
--   poisoned   entries that failed here and were put off, a list of job, error (text), job, ...
--   job        the entry's
--   payload    the entry's, if it is of a kind
local function acquire(call, first, held)
  local queue, worker, discarded, poisoned = call.queue, call.worker, false, false
  local wait_until, min_standing = ARGV[first], tonumber(ARGV[first + 1])
  local pending, job, payload = pending_key(queue, worker), false, false
  for i = 1, MAX_SKIPPED do
    job = i == 1 and held or redis.call('RPOPLPUSH', instant_key(queue), pending)
    if not job then break end
    local kind, name, arg = kind_of(queue, job)
    if not kind then break end
    local entry = {
      queue = queue, worker = worker, job = job, arg = arg, kind = name, now = call.now,
      settings = call.settings[name], wait_until = wait_until, min_standing = min_standing,
      held = held and i == 1,
    }
    local ok, taken, noted = pcall(kind.take, entry)
    if ok and taken then
      payload = taken
      break
    end
    job = false
    if noted then
      discarded = discarded or {}
      table.insert(discarded, { name, noted })
    end
    if not ok then -- it met a key that is not of its type, which must harm no other entry
      put_off(entry, entry.now + POISONED_FOR)
      poisoned = poisoned or {}
      table.insert(poisoned, entry.job)
      table.insert(poisoned, type(taken) == 'table' and taken.err or tostring(taken))
    end
  end
  return discarded, poisoned, job, payload
end

-- Takes the next entry for a worker that has ended another. Returns what acquire returns, in a
-- table, or its error (text).
local function acquire_next(call, first)
  local ok, discarded, poisoned, job, payload = pcall(acquire, call, first)
  if ok then return { discarded, poisoned, job, payload } end
  return type(discarded) == 'table' and discarded.err or tostring(discarded)
end
