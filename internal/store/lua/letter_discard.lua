-- Removes dead letters of a subscriber.
--
-- ARGV     1 namespace, 2 token, 3 max events to remove, unless one letter has more, 4.. UIDs
-- Returns  {1, letters, events, how many of the UIDs are left}
allow_when_full()
return end_letters(ARGV[2], tonumber(ARGV[3]), 4, function() end)
