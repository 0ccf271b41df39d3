-- How a dead letter ends: as a batch again, or for good.

-- The number of events in a dead letter; 0 if its list is gone, or is none.
local function events_in_letter(bid)
  local length = redis.pcall('LLEN', dead_letter_key(bid))
  if type(length) ~= 'number' then return 0 end
  return math.max(0, length - HEADER)
end

-- Removes what there is of a subscriber's dead letter, and its events from the sums. With the last
-- one the sums go, whatever they are.
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

-- Ends those of a subscriber's dead letters that the arguments name from one on, until so many
-- events are done; one letter may have more. Each is given to a function, with the number of its
-- events, and removed. One that has lost its events is only removed. Returns {1, letters, events,
-- how many of the names are left}.
local function end_letters(token, max_events, first, finish)
  local count, events = 0, 0
  for i = first, #ARGV do
    local bid = ARGV[i]
    if redis.call('ZSCORE', dead_letters_key(token), bid) then
      local length = events_in_letter(bid)
      if count > 0 and events + length > max_events then
        return { 1, count, events, #ARGV - i + 1 }
      end
      if length > 0 then
        finish(bid, length)
        count, events = count + 1, events + length
      end
      remove_letter(token, bid, length)
    end
  end
  return { 1, count, events, 0 }
end
