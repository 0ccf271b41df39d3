-- Outboxes, on a bus with partitions. The home of a topic has a list for each other partition with
-- subscribers of the topic: of events that a job, a relay, carries there in order. A partition is
-- named by its number, two digits.

-- How many events have ever been carried to a partition, and the identity of that count: the id of
-- the bus here, and its losses of data. After a loss the number may be smaller than before. Empty
-- if there is no id.
local function read_carried(number)
  local mark = redis.pcall('HMGET', ns .. 'bus', 'id', 'losses')
  local of = mark[1] and mark[1] .. '.' .. (mark[2] or '0') or ''
  return tonumber(redis.call('HGET', relay_carried_key(), number)) or 0, of
end

local function relay_of(number) return pack_job('relay', number) end

-- The partitions to which events of a topic are relayed. An error if one cannot be written to. Adds
-- the other keys that are written to written, a table of keys and their types.
local function read_outboxes(topic, written)
  local numbers = redis.call('HKEYS', outboxes_key(topic))
  for _, number in ipairs(numbers) do redis.call('LLEN', outbox_key(number)) end
  if numbers[1] then
    written[jobs_index_key('relay')], written[instant_key('relay')] = 'set', 'list'
  end
  return numbers
end

-- Adds events, the arguments from first to last, to outboxes, and has them relayed.
local function fill_outboxes(numbers, first, last)
  for _, number in ipairs(numbers) do
    push_events(outbox_key(number), ARGV, first, last)
    if redis.call('SADD', jobs_index_key('relay'), relay_of(number)) == 1 then
      redis.call('LPUSH', instant_key('relay'), relay_of(number))
    end
  end
end
