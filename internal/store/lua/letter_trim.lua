-- Removes the oldest dead letters of a subscriber while they are too many or too old. One that is
-- too large by itself is kept alone.
--
-- ARGV     namespace; trimArgs of letters_trim.go
-- Returns  letters and events removed, and 1 if there may be more to remove, else 0
local token, kept_events, kept_bytes, kept_since, max_count, max_events, now, seed =
  unpack(ARGV, 2, 9)
kept_events, kept_bytes, kept_since =
  tonumber(kept_events), tonumber(kept_bytes), tonumber(kept_since)
max_count, max_events = tonumber(max_count), tonumber(max_events)
local index = dead_letters_key(token)

local function has_too_many()
  if redis.call('ZCARD', index) < 2 then return false end
  return (tonumber(redis.pcall('HGET', dead_letter_events_key(), token)) or 0) > kept_events
    or (tonumber(redis.pcall('HGET', dead_letter_bytes_key(), token)) or 0) > kept_bytes
end

local notices = gaps()

-- Removes letters, oldest first. Returns how many, the number of their events, and 1 if there may
-- be more to remove, else 0.
local function trim()
  local count, events = 0, 0
  while true do
    local oldest = redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')
    if not oldest[1] then
      redis.call('HDEL', dead_letter_events_key(), token) -- of letters that are gone
      redis.call('HDEL', dead_letter_bytes_key(), token)
      return count, events, 0
    end
    if tonumber(oldest[2]) >= kept_since and not has_too_many() then return count, events, 0 end
    if count >= max_count or events >= max_events then return count, events, 1 end
    local length = events_in_letter(oldest[1])
    if length > 0 then notices.count(token, dead_letter_key(oldest[1]), length) end
    remove_letter(token, oldest[1], length)
    count, events = count + 1, events + length
  end
end

allow_when_full()
local count, events, more = trim()
notices.note_counted(now, seed, 'dead_letters')
return { count, events, more }
