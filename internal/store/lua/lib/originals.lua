-- Leftovers of the Ruby original. Its batches are lists like ours, at another key.

-- Scripts that need them create them, as in setbacks.lua.
local function originals()
  local self = {}
  local PACKED_EVENT = '\146\161e' -- how every packed event begins: an array of two, "e"
  local CHUNK_OF_EVENTS = 1000 -- as many values as unpack can safely push at once
  local MIGRATION_TTL = 86400000 -- ms

  -- Whether a list begins as a batch does: with a token, a time (ms) and a number of attempts.
  function self.has_header(key)
    local header = redis.call('LRANGE', key, 0, HEADER - 1)
    if #header < HEADER or #header[1] > 64 then return false end
    return string.match(header[1], '^[a-z0-9:_-]+$') ~= nil
      and string.match(header[2], '^%d+$') ~= nil and string.match(header[3], '^%d+$') ~= nil
  end

  -- Whether a list has events from the beginning. The original leaves such a list where it has
  -- found a batch of ours current, and taken it for its own.
  function self.has_events_only(key)
    return string.sub(redis.call('LINDEX', key, 0) or '', 1, #PACKED_EVENT) == PACKED_EVENT
  end

  -- Notes that the original may run beside this program: see migration_key.
  function self.announce_migration()
    redis.call('SET', migration_key(), '1', 'PX', MIGRATION_TTL)
  end

  -- Adopts the original's part of a batch, if it has the original's form: moves a whole batch, or
  -- appends bare events to ours. Then the batch takes in no more events from either. Changes
  -- nothing otherwise. Returns whether it adopted any.
  function self.adopt(bid)
    local from, to = original_key(bid), batch_key(bid)
    if redis.call('TYPE', from).ok ~= 'list' then return false end
    local target = redis.call('TYPE', to).ok
    if target == 'none' and self.has_header(from) then
      redis.call('RENAME', from, to)
      change_gauge(
        bytes_gauge_key(), holder_of(redis.call('LINDEX', to, 0)), exact(event_bytes_of(bid)))
    elseif target == 'list' and self.has_events_only(from) and self.has_header(to) then
      local events = redis.call('LRANGE', from, 0, -1)
      for i = 1, #events, CHUNK_OF_EVENTS do
        redis.call('RPUSH', to, unpack(events, i, math.min(#events, i + CHUNK_OF_EVENTS - 1)))
      end
      redis.call('DEL', from)
      change_gauge(
        bytes_gauge_key(), holder_of(redis.call('LINDEX', to, 0)), exact(bytes_of(events, 1)))
    else
      return false
    end
    redis.pcall('SREM', current_key(redis.call('LINDEX', to, 0)), bid)
    self.announce_migration()
    return true
  end

  return self
end
