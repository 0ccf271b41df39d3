-- How a dead letter ends: as a batch again, or for good.

-- Ends dead letters of a subscriber, named by the arguments from first on, until max_events events
-- are done; one letter may have more. Each is passed to a function, with the number of its events,
-- and removed. One that has lost its events is only removed. Returns {1, letters, events, how many
-- of the names are left}.
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
