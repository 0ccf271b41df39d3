-- Dead letters: events that are not delivered any more, kept for a while.

-- The number of events in a dead letter; 0 if its list is gone, or is none.
local function events_in_letter(bid)
  local length = redis.pcall('LLEN', dead_letter_key(bid))
  if type(length) ~= 'number' then return 0 end
  return math.max(0, length - HEADER)
end

-- Removes a subscriber's dead letter, and its events from the sums. With the last letter it removes
-- the sums, whatever their values.
local function remove_letter(token, bid, events)
  local bytes = tonumber(redis.pcall('HGET', dead_letter_cause_key(bid), 'bytes')) or 0
  redis.call('DEL', dead_letter_key(bid), dead_letter_cause_key(bid))
  redis.call('ZREM', dead_letters_key(token), bid)
  if redis.call('EXISTS', dead_letters_key(token)) == 0 then
    redis.pcall('HDEL', dead_letter_events_key(), token)
    redis.pcall('HDEL', dead_letter_bytes_key(), token)
    return
  end
  if events > 0 then change_gauge(dead_letter_events_key(), token, -events) end
  if bytes > 0 then change_gauge(dead_letter_bytes_key(), token, -bytes) end
end

-- Scripts that need them create them, as in setbacks.lua. A letter's cause is a list of its UID,
-- reason, status, error, note and webhook_id.
local function letters()
  local self = {}
  local CHUNK = 1000 -- as many values as unpack can safely push at once

  -- Files a letter of events of a batch. Its list is there. Returns the bytes of the events.
  local function file(bid, token, now, cause, events)
    local uid, bytes = cause[1], bytes_of(events, 1)
    local state = redis.pcall('HMGET', batch_state_key(bid), 'revision', 'lane')
    redis.call('HSET', dead_letter_cause_key(uid), 'reason', cause[2], 'status', cause[3],
      'error', cause[4], 'note', cause[5], 'webhook_id', cause[6],
      'revision', tonumber(state[1]) or 0, 'bytes', bytes, 'died_at', now)
    if state[2] then redis.call('HSET', dead_letter_cause_key(uid), 'lane', state[2]) end
    redis.call('ZADD', dead_letters_key(token), now, uid)
    change_gauge(dead_letter_events_key(), token, #events)
    change_gauge(dead_letter_bytes_key(), token, bytes)
    return bytes
  end

  -- Makes a letter of a batch by moving its list, which takes no memory. The caller removes the
  -- batch's other keys. Returns the bytes of its events, as text.
  function self.bury(bid, token, now, cause)
    redis.call('RENAME', batch_key(bid), dead_letter_key(bid))
    local events = redis.call('LRANGE', dead_letter_key(bid), HEADER, -1)
    return exact(file(bid, token, now, cause, events))
  end

  -- Makes a letter of some events of a batch, given its header, the cause, which events, and the
  -- batch's first events, which include them. The caller removes the events from the batch.
  function self.extract(bid, header, now, cause, first_events)
    local events, list = {}, dead_letter_key(cause[1])
    for first, last in string.gmatch(cause[7], '(%d+)%-(%d+)') do
      for i = first + 1, last + 1 do table.insert(events, first_events[i]) end
    end
    redis.call('RPUSH', list, header[1], header[2], header[3])
    for i = 1, #events, CHUNK do
      redis.call('RPUSH', list, unpack(events, i, math.min(#events, i + CHUNK - 1)))
    end
    file(bid, header[1], now, cause, events)
  end

  return self
end
