-- The facts that a publish to a topic needs beyond the founding keys.

-- The field of the key plans with the UID of the channel of a topic's live tail.
local function tail_field(topic) return '?' .. topic end
local function tail_channel(uid) return ns .. 'tail:' .. uid end

-- A publish creates these if the bus has any such data, as in setbacks.lua. Reads the data of the
-- topic and of its subscribers.
local function publish_extras(topic, subscribers)
  local self = {}
  local CHUNK = 1000 -- as many values as unpack can safely return at once
  local MAX_TOLD = 20 -- events of one publish that a tail gets

  local of_topic = redis.call('HMGET', plans_key(), history_field(topic), tail_field(topic))
  self.keeps_history = of_topic[1] == '1'
  local channel = of_topic[2]
  local versions = {} -- of their lanes, in the order of the subscribers: false if there is one lane
  for i = 1, #subscribers, CHUNK do
    local some = { unpack(subscribers, i, math.min(#subscribers, i + CHUNK - 1)) }
    for _, version in ipairs(redis.call('HMGET', plans_key(), unpack(some))) do
      table.insert(versions, version)
    end
  end

  -- Sends the events of these arguments to the topic's tail: how many there are, and the first of
  -- them. Ends the tail if no process listens. An error here fails nothing.
  function self.tell(first, last)
    if not channel then return end
    local told = { last - first + 1 .. ' ' }
    for i = first, math.min(last, first + MAX_TOLD - 1) do
      table.insert(told, #ARGV[i] .. ':' .. ARGV[i])
    end
    if redis.pcall('PUBLISH', tail_channel(channel), table.concat(told)) == 0 then
      redis.call('HDEL', plans_key(), tail_field(topic))
    end
  end

  -- The answer to a publish that was sent with other lanes than these.
  function self.stale()
    local lanes = {}
    for i, token in ipairs(subscribers) do
      if versions[i] then table.insert(lanes, token .. ' ' .. versions[i]) end
    end
    return { 0, 'lanes', table.concat(lanes, ' ') }
  end

  -- Sorts the events, which begin at an argument, into the lanes of a subscriber, in the order of
  -- their first events.
  local function sort(token, digits, first_event)
    local lanes, of = {}, {}
    for i = 1, #digits do
      local digit = string.sub(digits, i, i)
      if not of[digit] then
        local number = string.find(UID_DIGITS, digit, 1, true) - 1
        of[digit] = { number = number, events = {}, key = lane_of_subscriber(token, number) }
        table.insert(lanes, of[digit])
      end
      table.insert(of[digit].events, ARGV[first_event + i - 1])
    end
    return lanes
  end

  -- Reads the lanes that were sent, from an argument on until the first event. Returns the lanes of
  -- each subscriber with several, by token; nil if they have other lanes now.
  function self.lanes(first, first_event)
    local sent, left, lanes = {}, 0, {}
    for i = first, first_event - 1, 3 do
      sent[ARGV[i]] = { version = ARGV[i + 1], digits = ARGV[i + 2] }
      left = left + 1
    end
    for i, token in ipairs(subscribers) do
      local known = sent[token] or {}
      if (versions[i] or nil) ~= known.version then return nil end
      if versions[i] then
        lanes[token] = sort(token, known.digits, first_event)
        left = left - 1
      end
    end
    if left > 0 then return nil end
    return lanes
  end

  return self
end
