-- Job types, as a step needs them. All times are in µs since the Unix epoch, except times passed to
-- the queue, which are in ms.

local QUEUE = 'jobs'
local STATUSES = { 'succeeded', 'failed', 'expired', 'cancelled' } -- of archived jobs
local WAIT = 86400000 -- ms, until an entry that waits for its turn comes up by itself
local LOOKING = 4 -- entries of a type that are woken at most while it does not go on
local WOKEN = 256 -- entries that are woken at once when it goes on again

local function entry_of(id) return pack_job('job', id) end

-- The time in ms at which one in µs has come.
local function due(time) return exact(math.ceil(time / 1000)) end

-- The types that a script has read, by name: to end a job and to take the next reads its type once.
local TYPES = {}

-- A type, nil if there is none. `max` is how many of its jobs may be in progress: none while it is
-- paused, or being deleted.
local function read_type(name)
  if TYPES[name] then return TYPES[name] end
  local found = redis.call('HMGET', job_type_key(name), 'strategy', 'attempts', 'concurrency',
    'url', 'timeout', 'retention', 'paused', 'deleted', 'clock', 'held_until', 'holds', 'standing',
    'hold', 'wake_from', 'owner', 'kept', 'clients')
  if not found[1] then return nil end
  local closed = found[7] == '1' or found[8] == '1'
  TYPES[name] = {
    name = name, lane = lane_key('job', name), once = found[1] == 'at_most_once',
    attempts = tonumber(found[2]), max = closed and 0 or tonumber(found[3]),
    url = found[4], pull = found[4] == 'pull', timeout = tonumber(found[5]),
    retention = tonumber(found[6]), deleted = found[8] == '1', clock = tonumber(found[9]) or 0,
    held_until = tonumber(found[10]) or 0, holds = tonumber(found[11]) or 0,
    standing = tonumber(found[12]) or 1, hold = tonumber(found[13]) or 0,
    wake_from = tonumber(found[14]), owner = found[15] or '', kept = tonumber(found[16]) or 0,
    clients = found[17] or '',
  }
  return TYPES[name]
end

-- Whether a type is for other clients than one; '' is root, or the bus itself.
local function is_for_others(name, client)
  if client == '' then return false end
  local type = read_type(name)
  return type ~= nil and type.clients ~= ''
    and not string.find(' ' .. type.clients .. ' ', ' ' .. client .. ' ', 1, true)
end

-- The first of the next numbers of a type's sequence, `count` or one, which are the time, or a
-- little later: so they grow even if clocks differ, or go back.
local function next_number(type, now, count)
  local first = math.max(type.clock + 1, now)
  type.clock = first + (count or 1) - 1
  redis.call('HSET', job_type_key(type.name), 'clock', exact(type.clock))
  return first
end

-- Charges a type, and the account of its owner, for bytes that are kept; a negative number
-- discharges. Data kept before there were accounts is charged to neither.
local function keep(type, account, bytes)
  local kept = math.max(0, type.kept + bytes)
  if kept == type.kept then return end
  charge(account, kept - type.kept)
  type.kept = kept
  redis.call('HSET', job_type_key(type.name), 'kept', exact(kept))
end

-- Notifies waiting fetchers that there may be jobs of a type.
local function announce(type)
  redis.call('XADD', job_pulls_key(), 'MAXLEN', 100, '*', 'type', type.name)
end

-- Whether a type's service takes jobs, as far as is known.
local function goes_on(type) return type.holds == 0 and type.standing == 2 end

-- Wakes the first jobs of a type that wait although they have their turn, at most so many.
local function wake_first(type, most)
  for _, entry in ipairs(in_turn_of(type.lane, type.max, most)) do make_instant(QUEUE, entry) end
end

-- Wakes the next of the jobs that stand behind the place `wake_from`, once a type goes on: not all
-- at once, but more of them with each step.
local function go_on_waking(type)
  local found = in_turn_of(type.lane, type.max, WOKEN, type.wake_from)
  for _, entry in ipairs(found) do make_instant(QUEUE, entry) end
  if #found == WOKEN then
    type.wake_from = tonumber(redis.call('ZSCORE', type.lane, found[WOKEN]))
    redis.call('HSET', job_type_key(type.name), 'wake_from', exact(type.wake_from))
  else
    type.wake_from = nil
    redis.call('HDEL', job_type_key(type.name), 'wake_from')
  end
end

-- Wakes the jobs of a type that wait although they have their turn: after its limit was raised, for
-- instance. If its service may take none, a few are enough to try it.
local function wake(type)
  if type.pull then
    if #in_turn_of(type.lane, type.max, 1) > 0 then announce(type) end
  elseif goes_on(type) then
    type.wake_from = 0
    go_on_waking(type)
  else
    wake_first(type, LOOKING)
  end
end

-- Wakes other jobs of a type after one that was taken, or that has left. If the type does not go
-- on, it wakes one, so that there is always a job that checks whether it does.
local function wake_others(type)
  if type.wake_from then
    go_on_waking(type)
  elseif not goes_on(type) then
    wake_first(type, 1)
  end
end

-- Takes a job out of its type's lane.
local function leave(type, entry)
  if type.pull then
    if redis.call('ZREM', type.lane, entry) == 1 then announce(type) end
  else
    leave_wide_lane(type.lane, QUEUE, entry, type.max)
    wake_others(type)
  end
end

-- Notes the outcome of an attempt for a type's service: whether it took the job, and its standing
-- now, nil if that is not known. A job that was taken before the service asked for time, or before
-- the type had another service, says nothing about the present.
local function note_answer(type, job, took, standing)
  if job.hold ~= type.hold or type.pull then return end
  local going = goes_on(type)
  if took and type.holds > 0 then
    type.holds, type.held_until = 0, 0
    redis.call('HSET', job_type_key(type.name), 'holds', '0', 'held_until', '0')
  end
  if standing and standing ~= type.standing then
    type.standing = standing
    redis.call('HSET', job_type_key(type.name), 'standing', standing)
  end
  if not going and goes_on(type) then wake(type) end
end

-- Holds the jobs of a type back until a time, for a job. Holds is how often in a row that was so,
-- as the next time goes by it. Of many jobs that were in flight together, one counts.
local function hold_back(type, job, time, holds)
  if job.hold ~= type.hold then return end
  type.hold, type.holds, type.held_until = type.hold + 1, holds, time
  type.wake_from = nil
  redis.call('HSET', job_type_key(type.name), 'hold', type.hold, 'holds', type.holds,
    'held_until', exact(time))
  redis.call('HDEL', job_type_key(type.name), 'wake_from')
end
