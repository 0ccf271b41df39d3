-- Job types, as a step needs them. All times are in µs since the Unix epoch, but for those that the
-- queue is given, which are in ms.

local QUEUE = 'jobs'
local STATUSES = { 'succeeded', 'failed', 'expired', 'cancelled' } -- of archived jobs
local WAIT = 86400000 -- ms, until an entry that waits for its turn comes up by itself
local LOOKING = 32 -- entries of a type that come up at once, to see whether it goes on

local function entry_of(id) return pack_job('job', id) end

-- The time in ms at which one in µs has come.
local function due(time) return exact(math.ceil(time / 1000)) end

-- What a script has read of types, by name: to end a job and to take the next reads it once.
local TYPES = {}

-- A type, nil if there is none. `max` is how many of its jobs may be in progress: none while it is
-- paused, or being deleted.
local function read_type(name)
  if TYPES[name] then return TYPES[name] end
  local found = redis.call('HMGET', type_key(name), 'strategy', 'attempts', 'concurrency', 'url',
    'timeout', 'retention', 'paused', 'deleted', 'clock', 'held_until', 'holds', 'standing')
  if not found[1] then return nil end
  local closed = found[7] == '1' or found[8] == '1'
  TYPES[name] = {
    name = name, lane = lane_key('job', name), once = found[1] == 'at_most_once',
    attempts = tonumber(found[2]), max = closed and 0 or tonumber(found[3]),
    url = found[4], pull = found[4] == 'pull', timeout = tonumber(found[5]),
    retention = tonumber(found[6]), deleted = found[8] == '1', clock = tonumber(found[9]) or 0,
    held_until = tonumber(found[10]) or 0, holds = tonumber(found[11]) or 0,
    standing = tonumber(found[12]) or 1,
  }
  return TYPES[name]
end

-- The first of the next numbers of a type's sequence, `count` or one, which are the time, or a
-- little later: so they grow even if clocks differ, or go back.
local function next_number(type, now, count)
  local first = math.max(type.clock + 1, now)
  type.clock = first + (count or 1) - 1
  redis.call('HSET', type_key(type.name), 'clock', exact(type.clock))
  return first
end

-- Tells those who wait for jobs to fetch that there may be some.
local function announce() redis.call('XADD', pulls_key(), 'MAXLEN', 1, '*', 'job', '') end

local function leave(type, entry)
  if type.pull then
    if redis.call('ZREM', type.lane, entry) == 1 then announce() end
  else
    leave_wide_lane(type.lane, QUEUE, entry, type.max)
  end
end

-- Wakes the jobs of a type that wait although they have their turn, at most `most` of them behind
-- the first `offset`: after its limit was raised, for instance. While its service asks for time, a
-- few are enough to try it. Returns how many it has looked at.
local function wake(type, most, offset)
  if type.holds > 0 then most, offset = math.min(most, LOOKING), 0 end
  local entries = in_turn_of(type.lane, type.max, most, offset)
  if type.pull then
    if #entries > 0 then announce() end
    return 0
  end
  for _, entry in ipairs(entries) do make_instant(QUEUE, entry) end
  return #entries
end
