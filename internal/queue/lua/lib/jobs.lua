-- Jobs: their bytes, and the moves between their states.

-- A full Redis refuses a script at its first write, if that write may take memory, and never later.
-- Scripts that empty the bus must go on then: they begin with a write that takes none.
local function allow_when_full() redis.call('HDEL', workers_key(), '') end

-- The characters of UIDs, as in Go.
local UID_DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

-- A job is MessagePack [name, [arguments...]]. These are the bytes of one with one argument, which
-- is not empty and has at most MAX_ARGUMENT bytes, as a UUID. One byte holds the length of a string
-- of up to MAX_STRING bytes, as the name is; a longer one has its length in a byte of its own.
local MAX_STRING, MAX_ARGUMENT = 31, 36
local function pack_job(name, argument)
  local length = #argument
  return '\146' .. string.char(160 + #name) .. name .. '\145'
    .. (length <= MAX_STRING and string.char(160 + length) or '\217' .. string.char(length))
    .. argument
end

-- The name and the argument of a job as pack_job writes it; nil for any other.
local function unpack_job(job)
  local name = string.sub(job, 3, (string.byte(job, 2) or 0) - 158)
  local argument = string.sub(job, #name + 5)
  if #argument > MAX_STRING then argument = string.sub(argument, 2) end
  if argument ~= '' and #name <= MAX_STRING and #argument <= MAX_ARGUMENT
    and job == pack_job(name, argument) then
    return name, argument
  end
  return nil
end

-- Moves a scheduled job to the end of the instant ones. A job in any other state stays there.
local function make_instant(queue, job)
  if redis.call('ZREM', scheduled_key(queue), job) == 1 then
    redis.call('LPUSH', instant_key(queue), job)
  end
end

-- Of each of some jobs, when it comes up (text), false if it is not scheduled.
local function waiting(queue, jobs)
  if not jobs[1] then return {} end
  return redis.call('ZMSCORE', scheduled_key(queue), unpack(jobs))
end

-- The set of a queue's jobs that are in flight.
local function jobs_in_flight(queue)
  local held = {}
  for _, worker in ipairs(redis.call('SMEMBERS', pending_index_key(queue))) do
    for _, job in ipairs(redis.call('LRANGE', pending_key(queue, worker), 0, -1)) do
      held[job] = true
    end
  end
  return held
end

-- A whole number as a text. Redis writes large ones as 1e+12 unless told otherwise.
local function exact(number) return string.format('%.0f', tonumber(number)) end

-- The kinds of entries, by the names of their jobs. Jobs of other names have no payload and no
-- lane. A kind's library adds a table with:
--   queue           the only queue where its entries stand
--   exists(arg)     whether what an entry is about is there
--   take(entry)     the entry's payload, a table; or nil, after put_off; or nil and a list, which
--                   the caller is given, after discard
--   complete(entry) ends what an entry was about, which is done, or gone
--   retry(entry)    notes that an entry is to run again
-- An entry has: queue, worker, job, arg (the job's argument), kind (its name), now (ms, text),
-- settings (the kind's own, strings). For take also: min_standing (of the lane), wait_until (ms,
-- text), full (see put_off_if_full), held (whether the worker has it pending, and the reply that
-- gave it was lost). For complete and retry also: result (the kind's own values, strings). For
-- retry also: time (ms). A kind that lets a worker take several entries of a lane at once adds,
-- with max_ahead in an entry for take:
--   take_ahead(entry)  after take, the entries that follow in the lane, at most max_ahead: a list
--                   of {job, values}, and whether they are the next of the instant ones; if not,
--                   they are scheduled. They are not taken yet
--   give_back(settings, arg, job)  notes that one of these was not begun, and waits again
--   complete_all(entries)  complete, for several of one lane, in order
-- A kind whose entries may be taken again in the step that ends them adds also:
--   holds(arg, result)  whether the result is that of the last time the entry was taken: a worker
--                   that repeats a call, because the reply was lost, may have taken it again
-- The library of a kind whose jobs do not have one argument adds to KINDS:
--   unpack_job(job) as unpack_job, but that the argument may be a table
local KINDS = {}

-- The kind of a job of a queue, its name and the job's argument; nil if the job is of no kind.
local function kind_of(queue, job)
  local name, arg = (KINDS.unpack_job or unpack_job)(job)
  local kind = name and KINDS[name]
  if kind and kind.queue == queue then return kind, name, arg end
  return nil
end

-- Reads what all calls for a worker begin with, after the namespace: queue, worker, now (ms), how
-- many arguments the settings of the kinds are, and of each kind its name, the number of its
-- settings, and these. Returns these, the settings by kind, and the index of the next argument.
local function read_call()
  local settings, i, last = {}, 6, 5 + ARGV[5]
  while i <= last do
    local next = i + 2 + ARGV[i + 1]
    settings[ARGV[i]] = { unpack(ARGV, i + 2, next - 1) }
    i = next
  end
  return { queue = ARGV[2], worker = ARGV[3], now = ARGV[4], settings = settings }, i
end
