-- Dead letters: events that are not delivered any more, kept for a while.

-- These are made by a script that needs them, as those of setbacks.lua. A letter's cause is a list
-- of its UID, reason, status, error, note and webhook_id.
local function letters()
  local self = {}
  local CHUNK = 1000 -- as many values as unpack can safely push at once

  -- Files a letter whose list is there.
  local function file(token, now, revision, cause)
    local uid, bytes = cause[1], 0
    local events = redis.call('LRANGE', dead_letter_key(uid), HEADER, -1)
    for _, event in ipairs(events) do bytes = bytes + #event end
    redis.call('HSET', dead_letter_cause_key(uid), 'reason', cause[2], 'status', cause[3],
      'error', cause[4], 'note', cause[5], 'webhook_id', cause[6], 'revision', revision,
      'bytes', bytes, 'died_at', now)
    redis.call('ZADD', dead_letters_key(token), now, uid)
    change_gauge(dead_letter_events_key(), token, #events)
    change_gauge(dead_letter_bytes_key(), token, bytes)
  end

  local function revision_of(bid)
    return tonumber(redis.pcall('HGET', batch_state_key(bid), 'revision')) or 0
  end

  -- Makes a letter of what a batch has; its list is moved, which takes no memory. What else there
  -- is of the batch is the caller's to remove.
  function self.bury(bid, token, now, cause)
    redis.call('RENAME', batch_key(bid), dead_letter_key(bid))
    file(token, now, revision_of(bid), cause)
  end

  -- Makes a letter of events of a batch, given its header and, behind the cause, which. They are
  -- the caller's to remove. All events of the batch may be given, which saves reading them again.
  function self.extract(bid, header, now, cause, all)
    local events, list = { header[1], header[2], header[3] }, dead_letter_key(cause[1])
    for first, last in string.gmatch(cause[7], '(%d+)%-(%d+)') do
      if all then
        for i = first + 1, last + 1 do table.insert(events, all[i]) end
      else
        local found = redis.call('LRANGE', batch_key(bid), HEADER + first, HEADER + last)
        for _, event in ipairs(found) do table.insert(events, event) end
      end
    end
    for i = 1, #events, CHUNK do
      redis.call('RPUSH', list, unpack(events, i, math.min(#events, i + CHUNK - 1)))
    end
    file(header[1], now, revision_of(bid), cause)
  end

  return self
end
