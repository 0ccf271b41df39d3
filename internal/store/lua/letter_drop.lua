-- Drops dead letters of a subscriber without its asking.
--
-- ARGV     1 namespace, 2 token, 3 max events to drop, unless one letter has more, 4 now (ms),
--          5 first 16 characters of the UID of a gap notice, 6.. UIDs
-- Returns  {1, letters, events, how many of the UIDs are left}
local token, notices = ARGV[2], gaps()
allow_when_full()
local ended = end_letters(token, tonumber(ARGV[3]), 6, function(bid, length)
  notices.count(token, dead_letter_key(bid), length)
end)
notices.note_counted(ARGV[4], ARGV[5], 'dead_letters')
return ended
