-- The functions that the queue's scripts call for labels: see KINDS in the queue's lib/jobs.lua.
-- The arguments of an entry are the names of the machine and the label. The settings are {a text
-- that no other call has}, by which the label is taken: see `holds`.

local RECHECK = 250 -- ms, until a label is looked at again that no thread may take now
local MAX_RECHECK = 60000 -- ms, the same if very many wait
local CLOSING = 1000 -- ms, until a label is looked at again that may not go where it would

-- A label that was errored is in a gate, because its state has become one, or as it was paused.
local function clear_errored(label)
  if not label.errored then return end
  redis.call('HDEL', label_key(label.machine, label.name), 'errored_at', 'attempts')
  redis.call('ZREM', errored_labels_key(label.machine), label.name)
end

-- Schedules another look at a label that does not move now. If its webhook was acknowledged, that
-- is not called again.
local function put_off_move(label, status, time)
  if status ~= '' then
    redis.call('HSET', label_key(label.machine, label.name), 'acknowledged', status)
  end
  local trigger = label.asked or label.values[TRIGGER] or 'metadata'
  if not time then return trigger end
  ask_later(label.machine, label.name, trigger, time)
  return nil
end

-- Applies the result of a visit's evaluations and attempts. Each function takes the label, the
-- entry and its result, whose first values are the name of the function, the text by which the
-- label was taken, and the standing of its state. It returns a trigger if a worker has to look at
-- the label again at once.
local RESULTS = {
  -- See moveResult in kind.go.
  moved = function(label, entry, result)
    local version, edition, state, why, runs_on, steps, publication, status = unpack(result, 4, 11)
    if (version ~= '' and version ~= label.version) or not definitions_are(edition) then
      return put_off_move(label, status)
    end
    if is_closing(label.machine, state) then
      return put_off_move(label, status, entry.now + CLOSING)
    end
    move(label, entry.now, state, why, publication)
    if runs_on ~= '1' then return nil end
    redis.call('HSET', label_key(label.machine, label.name), 'steps', steps)
    local traceparent = label.values[TRACEPARENT]
    if traceparent then
      redis.call('HSET', label_key(label.machine, label.name), 'traceparent', traceparent)
    end
    note_hops(label.machine, label.name, label.values[HOPS] or '0')
    return 'entry'
  end,
  -- The gate stays closed. It is evaluated again at once if something has asked for it since.
  closed = function(label, entry)
    clear_errored(label)
    redis.call('HDEL', label_key(label.machine, label.name), 'steps', 'failures', 'error',
      'acknowledged', 'taken', not entry.time and 'trigger' or 'steps',
      not label.asked and 'traceparent' or 'steps',
      not entry.time and not label.asked and 'hops' or 'steps')
    return label.asked
  end,
  -- 4 why the evaluation failed, 5 how many have in a row
  failed = function(label, entry, result)
    clear_errored(label)
    redis.call('HSET', label_key(label.machine, label.name), 'error', result[4],
      'failures', result[5])
    redis.call('HDEL', label_key(label.machine, label.name), 'steps', 'acknowledged', 'taken')
    return label.asked
  end,
  -- 4 how many attempts of the action have failed, 5 the status, '' without an answer, 6 the error
  attempted = function(label, entry, result)
    redis.call('HSET', label_key(label.machine, label.name), 'attempts', result[4],
      'status', result[5], 'reason', result[6])
    redis.call('HDEL', label_key(label.machine, label.name), 'steps', 'taken')
    return nil
  end,
  -- as attempted; there is no other attempt
  errored = function(label, entry, result)
    redis.call('HSET', label_key(label.machine, label.name), 'attempts', result[4],
      'status', result[5], 'reason', result[6], 'errored_at', entry.now)
    redis.call('HDEL', label_key(label.machine, label.name), 'steps', 'trigger', 'taken')
    redis.call('ZADD', errored_labels_key(label.machine), '0', label.name)
    return label.asked
  end,
  -- There is nothing to do.
  idle = function(label)
    redis.call('HDEL', label_key(label.machine, label.name), 'trigger', 'taken')
    return label.asked
  end,
  -- The run has made too many moves, and goes on at the entry's time.
  paused = function(label)
    redis.call('HDEL', label_key(label.machine, label.name), 'steps', 'taken')
    return nil
  end,
  -- The worker failed, or had no thread for the state: the label was not looked at.
  again = function(label)
    local trigger = label.asked or label.values[TRIGGER]
    if trigger then redis.call('HSET', label_key(label.machine, label.name), 'asked', trigger) end
    return nil
  end,
}

-- Applies a worker's result for a label that it gives up.
local function settle(entry)
  local machine, name, result = entry.arg[1], entry.arg[2], entry.result
  local label = read_label(machine, name)
  if not label or label.deleted then return end
  if result[3] ~= '' then
    redis.call('HSET', machine_standings_key(machine), label.state, result[3])
  end
  local trigger = RESULTS[result[1]](label, entry, result)
  if trigger then ask(machine, name, trigger) end
end

-- The same. If it meets a key that is not of its type, the entry waits until that may be mended.
local function try_to_settle(entry)
  local ok, err = pcall(settle, entry)
  if ok then return end
  redis.call('SADD', jobs_index_key(entry.queue), entry.job)
  redis.call('ZADD', scheduled_key(entry.queue), exact(entry.now + POISONED_FOR), entry.job)
  error(type(err) == 'table' and err.err or err, 0)
end

KINDS.label = {
  queue = QUEUE,
  exists = function(arg) return redis.call('HEXISTS', label_key(arg[1], arg[2]), 'state') == 1 end,
  -- Returns {edition of the definitions, standing of the state, metadata, fields of the record}.
  take = function(entry)
    local machine, name = entry.arg[1], entry.arg[2]
    local label = read_label(machine, name)
    local trigger = label and (label.asked or label.values[TRIGGER])
    if not label or label.deleted or (label.errored and not trigger) then
      discard(entry)
      return nil
    end
    local standing = tonumber(redis.call('HGET', machine_standings_key(machine), label.state)) or 1
    if standing < entry.min_standing then
      -- Of very many, each waits longer, so that to look costs no more than of a few.
      local waiting = redis.call('ZCOUNT', scheduled_key(entry.queue), entry.now,
        exact(entry.now + MAX_RECHECK))
      put_off(entry, entry.now + math.min(math.max(RECHECK, waiting), MAX_RECHECK))
      return nil
    end
    if put_off_if_full(entry, machine .. '/' .. label.state, nil, machine .. '/') then
      return nil
    end
    if is_closing(machine, label.state, LEADING) then
      put_off(entry, entry.now + CLOSING) -- its gate or webhook would be asked for nothing
      return nil
    end
    label.values[TAKEN] = entry.settings[1]
    if label.asked then
      redis.call('HSET', label_key(machine, name), 'taken', entry.settings[1], 'trigger', trigger)
      redis.call('HDEL', label_key(machine, name), 'asked')
      label.values[TRIGGER] = trigger
    else
      redis.call('HSET', label_key(machine, name), 'taken', entry.settings[1])
    end
    return {
      definitions_edition(), standing,
      redis.call('GET', label_metadata_key(machine, name)), label.values,
    }
  end,
  holds = function(arg, result)
    local found = redis.call('HMGET', label_key(arg[1], arg[2]), 'taken', 'state')
    return not found[2] or found[1] == result[2]
  end,
  complete = try_to_settle,
  retry = try_to_settle,
}
