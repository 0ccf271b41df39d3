-- Histories keep the events that topics received. The key plans says which topics keep one, in a
-- field that is the topic's name behind a slash.

local function history_field(topic) return '/' .. topic end

-- Removes the history of a topic, if it keeps one; its memory is freed in the background. Returns
-- whether it kept one.
local function remove_history(topic)
  if redis.call('HDEL', plans_key(), history_field(topic)) == 0 then return false end
  redis.call('UNLINK', history_key(topic), history_limits_key(topic))
  return true
end

-- Scripts that need them create them, as in setbacks.lua. A history is a table of its topic,
-- max_events, max_age (ms) and max_bytes, infinite if there is no such limit, first, size and last,
-- as they are stored, and length, the number of its entries.
local function histories()
  local self = {}
  local CHUNK = 1000 -- as many values as unpack can safely push at once
  local MAX_TRIMMED, MAX_TRIMMED_BYTES = 1000, 4194304 -- of one step, so that it stays short
  local STAMP = 8 -- bytes of the time that an entry begins with

  local function stamp(ms)
    local bytes = ''
    for _ = 1, STAMP do
      bytes = string.char(ms % 256) .. bytes
      ms = math.floor(ms / 256)
    end
    return bytes
  end

  -- When the event of an entry was received (ms).
  function self.received_at(entry)
    local ms = 0
    for i = 1, STAMP do ms = ms * 256 + (string.byte(entry, i) or 0) end
    return ms
  end

  -- The history of a topic, without its length; nil if it keeps none, or that is damaged.
  local function noted(topic)
    local found = redis.pcall('HMGET', history_limits_key(topic), 'events', 'age', 'bytes', 'first',
      'size', 'last')
    if found.err or not found[4] then return nil end
    return {
      topic = topic, max_events = tonumber(found[1]) or math.huge,
      max_age = tonumber(found[2]) or math.huge, max_bytes = tonumber(found[3]) or math.huge,
      first = tonumber(found[4]) or 0, size = tonumber(found[5]) or 0,
      last = tonumber(found[6]) or 0,
    }
  end

  -- The history of a topic; nil if it keeps none, or that is damaged.
  function self.find(topic)
    local history = noted(topic)
    if not history then return nil end
    history.length = redis.pcall('LLEN', history_key(topic))
    if type(history.length) ~= 'number' then return nil end
    return history
  end

  local function save(history)
    redis.call('HSET', history_limits_key(history.topic), 'first',
      string.format('%.0f', history.first), 'size', string.format('%.0f', history.size), 'last',
      string.format('%.0f', history.last))
  end

  -- Removes the oldest entries that a history's limits do not let it keep, or as many of them as
  -- one step may, without noting that. Returns how many, and whether there may be more.
  local function trim(history, now)
    local key, since = history_key(history.topic), now - history.max_age
    local function keeps(entry)
      return history.length <= history.max_events and history.size <= history.max_bytes
        and (history.max_age == math.huge or (entry and self.received_at(entry) >= since))
    end
    local removed, bytes, done = 0, 0, false
    local window = math.max(1, math.min(100, history.length - history.max_events))
    while not done and not keeps() and history.length > 0 do
      if removed >= MAX_TRIMMED or bytes >= MAX_TRIMMED_BYTES then break end
      for _, entry in ipairs(redis.call('LRANGE', key, removed, removed + window - 1)) do
        done = keeps(entry)
        if done then break end
        removed, bytes = removed + 1, bytes + #entry
        history.length, history.size = history.length - 1, math.max(0, history.size - #entry)
      end
      window = math.min(100, 2 * window, MAX_TRIMMED - removed)
    end
    if removed > 0 then redis.call('LTRIM', key, removed, -1) end
    history.first = history.first + removed
    return removed, not done and not keeps() and history.length > 0
  end

  -- Trims a history, and notes that.
  function self.trim(history, now)
    local removed, more = trim(history, now)
    if removed > 0 then save(history) end
    return removed, more
  end

  -- Appends entries; returns how many there are then, or an error if the key is not of its type.
  local function push(key, entries)
    local length
    for i = 1, #entries, CHUNK do
      length = redis.pcall('RPUSH', key, unpack(entries, i, math.min(#entries, i + CHUNK - 1)))
    end
    return length
  end

  -- Appends events, a part of ARGV; the last has the counter's position. If they do not follow the
  -- stored ones, because events were published without their history or another program wrote to
  -- it, the history starts over: its positions have no gaps.
  function self.append(topic, now, from, to, counter)
    local history = noted(topic)
    if not history then return end
    history.last = math.max(now, history.last)
    local time, entries, size, key = stamp(history.last), {}, 0, history_key(topic)
    for i = from, to do
      local entry = time .. ARGV[i]
      table.insert(entries, entry)
      size = size + #entry
    end
    history.length, history.size = push(key, entries), history.size + size
    if history.length ~= counter - history.first + 1 then
      redis.call('UNLINK', key)
      history.length, history.size = push(key, entries), size
      history.first = counter - history.length + 1
    end
    trim(history, now)
    save(history)
  end

  return self
end
