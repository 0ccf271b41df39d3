-- Labels: their records, the requests to evaluate them, and their moves.

local QUEUE = 'machines'
local KEPT = 99 -- the index of the last move of a history that is kept
local TOMBSTONE = 86400000 -- ms, for which the name of a deleted label cannot be used

-- The fields of a record. The fields from `asked` on belong to one visit, and go when it ends.
local FIELDS = {
  'state', 'created_at', 'entered_at', 'moves', 'version', 'previous', 'deleted_at', 'by', 'asked',
  'trigger', 'pending', 'steps', 'failures', 'error', 'attempts', 'status', 'reason', 'errored_at',
  'taken', 'traceparent', 'acknowledged', 'hops',
}
local ASKED, TRIGGER, TAKEN, TRACEPARENT, HOPS = 9, 10, 19, 20, 22

local function entry_of(machine, name) return pack_pair('label', machine, name) end

-- A label's record, nil if there is none: its values, as FIELDS names them, and some by name.
local function read_label(machine, name)
  local found = redis.call('HMGET', label_key(machine, name), unpack(FIELDS))
  if not found[1] and not found[7] then return nil end
  return {
    machine = machine, name = name, state = found[1], moves = tonumber(found[4]) or 0,
    version = found[5] or '0', deleted = found[7], asked = found[ASKED], errored = found[18],
    by = found[8], values = found,
  }
end

-- Charges the client that has made a label for bytes of it; fewer than 0 are gone. One of before
-- there were accounts is in none.
local function charge_label(label, bytes)
  if label.by and bytes ~= 0 then charge(account_of(label.by), bytes) end
end

-- How many bytes of metadata a label has. A value of another type, written by another program,
-- counts as nothing.
local function metadata_bytes(machine, name)
  return tonumber(redis.pcall('STRLEN', label_metadata_key(machine, name))) or 0
end

-- How many bytes a label's history is charged with, that has made so many moves.
local function history_bytes(moves)
  return HISTORY_BYTES * math.ceil(math.min(moves, KEPT + 1) / MOVES_CHARGED)
end

-- When a worker looks at a label next (ms, a text): '0' if at once, false if none will.
local function next_look(machine, name)
  local entry = entry_of(machine, name)
  if redis.call('SISMEMBER', jobs_index_key(QUEUE), entry) == 0 then return false end
  return redis.call('ZSCORE', scheduled_key(QUEUE), entry) or '0'
end

-- Why a script refuses to change a label, nil if there is no reason.
local function refusal_of(label)
  if not label then return 'unknown label' end
  if label.deleted then return 'deleted' end
  return nil
end

-- Notes a field of the request for which a worker is to look at a label. If the value equals
-- `none`, the field noted before, if any, is removed.
local function note_request(machine, name, field, value, none, before)
  if value ~= none then
    redis.call('HSET', label_key(machine, name), field, value)
  elseif before then
    redis.call('HDEL', label_key(machine, name), field)
  end
end

-- Notes the traceparent of a request for which a worker is to look at a label; '' for none.
local function trace(machine, name, traceparent, before)
  note_request(machine, name, 'traceparent', traceparent, '', before)
end

-- Notes how many moves have set off one another up to the request for which a worker is to look at
-- a label; '0' for a client and the clock.
local function note_hops(machine, name, hops, before)
  note_request(machine, name, 'hops', hops, '0', before)
end

-- Queues a label for a worker, for a trigger.
local function ask(machine, name, trigger)
  redis.call('HSET', label_key(machine, name), 'asked', trigger)
  local entry = entry_of(machine, name)
  if redis.call('SADD', jobs_index_key(QUEUE), entry) == 1 then
    redis.call('LPUSH', instant_key(QUEUE), entry)
  else
    make_instant(QUEUE, entry)
  end
end

-- The same, at a time; it must have no entry.
local function ask_later(machine, name, trigger, time)
  redis.call('HSET', label_key(machine, name), 'asked', trigger)
  local entry = entry_of(machine, name)
  redis.call('SADD', jobs_index_key(QUEUE), entry)
  redis.call('ZADD', scheduled_key(QUEUE), exact(time), entry)
end

-- Takes a label's entry off the queue, if it waits for its time. One that is instant, or that a
-- worker has, goes when it comes up.
local function forget(machine, name)
  local entry = entry_of(machine, name)
  if redis.call('ZREM', scheduled_key(QUEUE), entry) == 1 then
    redis.call('SREM', jobs_index_key(QUEUE), entry)
  end
end

-- Queues a move for publication: `publication` is the publish part of its machine's definition
-- (JSON), '' for none; `from` and `to` are JSON texts. A move that finds the outbox empty adds an
-- entry of its own, named by the number of the move: the entry that has just emptied the outbox may
-- not be over.
local function tell(label, now, from, to, publication)
  if publication == '' then return end
  local machine = label.machine
  local number = redis.call('HINCRBY', machine_published_key(machine), 'count', 1)
  local moved = '[' .. now .. ',' .. from .. ',' .. to .. ']'
  local text = publication .. '\n' .. label.name .. '\n' .. moved
  if redis.call('RPUSH', machine_outbox_key(machine), text) == 1 then
    local entry = pack_pair('moves', machine, exact(number))
    redis.call('SADD', jobs_index_key(QUEUE), entry)
    redis.call('LPUSH', instant_key(QUEUE), entry)
  end
end

-- Notes a move: states are texts of JSON, why is JSON.
local function note_move(label, now, from, to, why)
  local history = label_history_key(label.machine, label.name)
  redis.call('LPUSH', history, '[' .. now .. ',' .. from .. ',' .. to .. ',' .. why .. ']')
  redis.call('LTRIM', history, 0, KEPT)
end

local function quoted(state) return '"' .. state .. '"' end

-- Moves a label to another state, and ends its visit.
local function move(label, now, to, why, publication)
  local key, from = label_key(label.machine, label.name), label.state
  note_move(label, now, quoted(from), quoted(to), why)
  tell(label, now, quoted(from), quoted(to), publication)
  redis.call('HDEL', key, unpack(FIELDS, ASKED))
  if label.errored then redis.call('ZREM', errored_labels_key(label.machine), label.name) end
  redis.call('HSET', key, 'state', to, 'entered_at', now, 'moves', exact(label.moves + 1),
    'previous', from)
  if from ~= to then
    redis.call('ZREM', labels_in_key(label.machine, from), label.name)
    redis.call('ZADD', labels_in_key(label.machine, to), '0', label.name)
  end
  charge_label(label, history_bytes(label.moves + 1) - history_bytes(label.moves))
end
