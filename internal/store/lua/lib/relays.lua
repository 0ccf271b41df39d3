-- Relays as a kind of the queue's entries: each carries the head of an outbox to another partition.
-- The taken head is noted with a UID until it is done, and taken again unchanged, so that the other
-- partition recognizes it. Settings: a UID for the head, max events, max bytes.
local RELAY = { queue = 'relay' }
KINDS.relay = RELAY

-- Its job is there until the outbox is found empty when it comes up.
function RELAY.exists() return true end

-- The record of a taken head: its UID, its number of events, and since when it is relayed (ms).
local TAKEN = '^(%S+) (%d+) (%d+)$'

local function note_taken(number, uid, length, since)
  redis.call('HSET', relay_taken_key(), number, uid .. ' ' .. length .. ' ' .. since)
end

-- How many events make up the head of an outbox: as many bytes as may be, and at least one event.
local function length_of_head(outbox, max_events, max_bytes)
  local SLICE = 100
  local length, bytes = 0, 0
  while length < max_events do
    local last = math.min(length + SLICE, max_events) - 1
    local some = redis.call('LRANGE', outbox, length, last)
    for _, event in ipairs(some) do
      bytes = bytes + #event
      if bytes > max_bytes and length > 0 then return length end
      length = length + 1
    end
    if #some < SLICE then break end
  end
  return length
end

-- Returns the UID of the relay, the identity of the count of events and how many events ever went
-- before, with a space between, then the events.
function RELAY.take(entry)
  local number, outbox, uid, length = entry.arg, outbox_key(entry.arg), nil, nil
  local taken = redis.call('HGET', relay_taken_key(), number)
  if taken then uid, length = string.match(taken, TAKEN) end
  if not uid then
    uid = entry.settings[1]
    length = length_of_head(outbox, tonumber(entry.settings[2]), tonumber(entry.settings[3]))
    if length == 0 then
      discard(entry)
      return nil
    end
    note_taken(number, uid, length, entry.now)
  end
  local events = redis.call('LRANGE', outbox, 0, length - 1)
  local carried, id = read_carried(number)
  table.insert(events, 1, uid)
  table.insert(events, 2, id .. ' ' .. exact(carried))
  return events
end

-- Ends a taken head, given its UID and the result: removes it from the outbox if it has arrived, or
-- takes half of it the next time if it was too large.
local function unload(entry)
  local taken = redis.call('HGET', relay_taken_key(), entry.arg) or ''
  local uid, length, since = string.match(taken, TAKEN)
  if not uid or uid ~= entry.result[1] then return end
  if entry.result[2] == 'arrived' then
    redis.call('LTRIM', outbox_key(entry.arg), length, -1)
    redis.call('HDEL', relay_taken_key(), entry.arg)
    redis.call('HINCRBY', relay_carried_key(), entry.arg, length)
  elseif entry.result[2] == 'too large' then
    length = math.max(1, math.floor(length / 2))
    note_taken(entry.arg, uid, length, since)
  end
end

RELAY.retry = unload
RELAY.complete = unload
