-- Taking an entry, with its payload, for a worker.

local MAX_SKIPPED = 100 -- entries put off or discarded by one call, so that it stays short
local MAX_RECHECKS = 8 -- times the recheck of a full owner, for which an entry is put off at most
local POISONED_FOR = 60000 -- ms, until an entry that failed here is tried again

-- Puts off an entry that was taken until a time (ms), unless it is woken before. Of entries put off
-- to the same time, one with a larger `ahead` (from 0 to below 1, if given) comes first.
local function put_off(entry, time, ahead)
  local score = ahead and string.format('%.4f', time - ahead) or exact(time)
  redis.call('ZADD', scheduled_key(entry.queue), score, entry.job)
  redis.call('RPOP', pending_key(entry.queue, entry.worker))
end

-- The owner of the requests to a URL, as HostOwner of owner.go; false if it has no host.
local function host_owner(url)
  local authority = string.match(url or '', '^https?://([^/?#]+)')
  local host = authority and string.match(string.lower(authority), '[^@]*$')
  host = host and string.gsub(host, ':443$', '')
  return host and host ~= '' and '@' .. host
end

-- Has an entry wait that was taken, if it may not be taken now because one of its owners is full:
-- the first that acquire was given decides. Returns whether it waits. `place` is how many entries
-- of the owner come up before it, and `url` where it is sent, each nil if it is not known. `ahead`
-- is as in put_off. Of very many entries each waits longer, so that to look at them again costs no
-- more than of a few: a ms for each that is scheduled soon, but not for more than come before it
-- if each owner that is full has as many before it.
local function put_off_if_full(entry, owner, place, group, url, ahead)
  local full = entry.full
  if not full then return false end
  local own = full[owner]
  local recheck = own or (group and full[group])
  if not recheck and url then recheck = full[host_owner(url) or ''] end
  if not recheck or recheck == 0 then return false end
  local longest = recheck * MAX_RECHECKS
  local soon = redis.call('ZCOUNT', scheduled_key(entry.queue), entry.now,
    exact(entry.now + longest))
  if own and place then soon = math.min(soon, place * full[1]) end
  put_off(entry, entry.now + math.min(math.max(recheck, soon), longest), ahead)
  return true
end

-- Reads the owners that are full: how many these are, and of each its name and for how long entries
-- are put off (ms). Returns nil if there are none, which is nearly always, else the times by name,
-- and at 1 how many they are.
local function read_full(first)
  if ARGV[first] == '0' then return nil end
  local full = { tonumber(ARGV[first]) }
  for i = first + 1, first + 2 * ARGV[first], 2 do full[ARGV[i]] = tonumber(ARGV[i + 1]) end
  return full
end

-- A spare of a worker, which takes an entry ahead for it: one for each number from 1 on. Its name
-- is the worker's but for the last character.
local function spare_of(worker, number)
  local digit = string.find(UID_DIGITS, string.sub(worker, -1), 1, true) or 0
  local next = (digit - 1 + number) % 64 + 1
  return string.sub(worker, 1, -2) .. string.sub(UID_DIGITS, next, next)
end

-- Takes the entries that follow one that was taken in its lane, each for a spare of its worker.
-- Returns a list of job, number of values, values, job, ..., and how many they are; false if there
-- are none.
local function acquire_ahead(entry, kind)
  local ok, found, are_instant = pcall(kind.take_ahead, entry)
  if not ok or not found[1] then return false, 0 end
  local jobs, spares, list = {}, {}, {}
  for i, ahead in ipairs(found) do
    jobs[i], spares[i] = ahead[1], spare_of(entry.worker, i)
    table.insert(list, ahead[1])
    table.insert(list, #ahead[2])
    for _, value in ipairs(ahead[2]) do table.insert(list, value) end
  end
  if are_instant then
    redis.call('LTRIM', instant_key(entry.queue), 0, -1 - #jobs)
  else
    redis.call('ZREM', scheduled_key(entry.queue), unpack(jobs))
  end
  for i, job in ipairs(jobs) do redis.call('LPUSH', pending_key(entry.queue, spares[i]), job) end
  if redis.call('SADD', pending_index_key(entry.queue), unpack(spares)) > 0 then
    for _, spare in ipairs(spares) do redis.call('HSET', workers_key(), spare, entry.now) end
  end
  return list, #jobs
end

-- Puts off an entry that was taken ahead, and was not begun: it waits for its turn again, until a
-- time (ms, text), unless it is woken before.
local function give_back(call, job, wait_until)
  redis.call('ZADD', scheduled_key(call.queue), wait_until, job)
  local kind, name, arg = kind_of(call.queue, job)
  kind.give_back(call.settings[name], arg, job)
end

-- Requeues the entries that a worker's spares have pending because a reply was lost: the worker
-- begins anew, and may not know of its spares. So these are noted as alive when they are needed
-- next. The arguments are acquire's.
local function give_back_all(call, first)
  local keys, spares = {}, {}
  for number = 1, tonumber(ARGV[first + 2]) do
    spares[number] = spare_of(call.worker, number)
    keys[number] = pending_key(call.queue, spares[number])
  end
  if not keys[1] or redis.call('EXISTS', unpack(keys)) == 0 then return end
  for _, pending in ipairs(keys) do
    local job = redis.call('RPOP', pending)
    if job then give_back(call, job, ARGV[first]) end
  end
  redis.call('SREM', pending_index_key(call.queue), unpack(spares))
end

-- Removes spares that have nothing pending any more, but for the first so many, from the index of
-- workers that may have.
local function leave_index(call, used)
  if call.spares and used < #call.spares then
    redis.call('SREM', pending_index_key(call.queue), unpack(call.spares, used + 1))
  end
end

-- Removes an entry that was taken.
local function discard(entry)
  redis.call('RPOP', pending_key(entry.queue, entry.worker))
  redis.call('SREM', jobs_index_key(entry.queue), entry.job)
end

-- Takes the next entry, given what read_call returns; the arguments from there on are when an entry
-- that waits comes up by itself at the latest (ms), the least standing of a lane, how many entries
-- may be taken ahead, and what read_full reads. The worker is registered; `held` is the job that it
-- has pending, if any. Returns, each false if there is none:
--   discarded  what kinds have returned of entries they discarded, a list of {kind, list}
--   poisoned   entries that failed here and were put off, a list of job, error (text), job, ...
--   job        the entry's
--   payload    the entry's, if it is of a kind
--   ahead      the entries that were taken ahead: see acquire_ahead
local function acquire(call, first, held)
  local queue, worker, discarded, poisoned = call.queue, call.worker, false, false
  local wait_until, min_standing = ARGV[first], tonumber(ARGV[first + 1])
  local pending, job, payload, ahead, used = pending_key(queue, worker), false, false, false, 0
  local full = read_full(first + 3)
  for i = 1, MAX_SKIPPED do
    job = i == 1 and held or redis.call('RPOPLPUSH', instant_key(queue), pending)
    if not job then break end
    local kind, name, arg = kind_of(queue, job)
    if not kind then break end
    if job == call.retried and not kind.holds then
      -- If it were taken, and the reply lost, the worker would end it once more.
      redis.call('RPOP', pending)
      redis.call('RPUSH', instant_key(queue), job)
      job = false
      break
    end
    local entry = {
      queue = queue, worker = worker, job = job, arg = arg, kind = name, now = call.now,
      settings = call.settings[name], wait_until = wait_until, min_standing = min_standing,
      held = held and i == 1, max_ahead = tonumber(ARGV[first + 2]), full = full,
    }
    -- A held entry has its thread. It may be running: this call may be an old one that Redis got to
    -- late, and its figures for other threads must not give the entry to one of these.
    if entry.held then entry.min_standing, entry.full = 0, nil end
    local ok, taken, noted = pcall(kind.take, entry)
    if ok and taken then
      payload = taken
      if entry.max_ahead > 0 and kind.take_ahead then ahead, used = acquire_ahead(entry, kind) end
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
  leave_index(call, used)
  return discarded, poisoned, job, payload, ahead
end

-- Takes the next entry for a worker that has ended another. Returns the results of acquire in a
-- table, or its error (text).
local function acquire_next(call, first)
  local ok, discarded, poisoned, job, payload, ahead = pcall(acquire, call, first)
  if ok then return { discarded, poisoned, job, payload, ahead } end
  return type(discarded) == 'table' and discarded.err or tostring(discarded)
end
