-- Jobs: their bytes, and the moves between their states.

-- A full Redis refuses a script at its first write, if that write may take memory, and never
-- later. What empties the bus must go on then: it begins with a write that takes none.
local function allow_when_full() redis.call('HDEL', workers_key(), '') end

-- A job is MessagePack [name, [arguments...]]. These are the bytes of one with one argument; its
-- strings have at most MAX_STRING bytes, so that one byte holds the length. The argument is not
-- empty.
local MAX_STRING = 31
local function pack_string(text) return string.char(160 + #text) .. text end
local function pack_job(name, argument)
  return '\146' .. pack_string(name) .. '\145' .. pack_string(argument)
end

-- The name and the argument of a job as pack_job writes it; nil for any other.
local function unpack_job(job)
  local name = string.sub(job, 3, (string.byte(job, 2) or 0) - 158)
  local argument = string.sub(job, #name + 5)
  if argument ~= '' and #name <= MAX_STRING and #argument <= MAX_STRING
    and job == pack_job(name, argument) then
    return name, argument
  end
  return nil
end

-- Moves a scheduled job to the instant ones: RPUSH makes it the next taken, LPUSH the last.
-- A job in any other state stays there.
local function make_instant(queue, job, push)
  if redis.call('ZREM', scheduled_key(queue), job) == 1 then
    redis.call(push, instant_key(queue), job)
  end
end

-- Redis writes large numbers as 1e+12 unless told otherwise.
local function milliseconds(time) return string.format('%.0f', time) end

-- The kinds of entries, by the names of their jobs. Jobs of other names have no payload and no
-- lane. A kind's library adds a table with:
--   queue           the only queue where its entries stand
--   exists(arg)     whether what an entry is about is there
--   take(entry)     the entry's payload, a table; or nil, after put_off or discard
--   complete(entry) ends what an entry was about, which is done
--   retry(entry)    notes that an entry is to run again; false if there is nothing left to run
-- An entry has: queue, worker, job, arg (the job's argument), kind, now (ms), settings (the kind's
-- own, strings). For take also: min_standing (of the lane), wait_until (ms), discarded (a list).
-- For complete and retry also: result (the kind's own values, strings).
local KINDS = {}

-- Fills in the kind and the argument of an entry that is of a known kind. Returns the kind.
local function kind_of(entry, settings)
  local name, arg = unpack_job(entry.job)
  local kind = name and KINDS[name]
  if not kind or kind.queue ~= entry.queue then return nil end
  entry.kind, entry.arg, entry.settings = name, arg, settings[name] or {}
  return kind
end
