-- Removes the oldest events of a topic's history that its limits do not let it keep, and more if
-- that is asked for.
--
-- ARGV     1 namespace, 2 topic, 3 now (ms), 4 how many events are to go in any case
-- Returns  {how many went, 1 if more are to go, else 0}. A step removes 1,000, or 4 MiB, at most
allow_when_full()
local history = histories().find(ARGV[2])
if not history then return { 0, 0 } end
history.max_events = math.min(history.max_events, math.max(0, history.length - tonumber(ARGV[4])))
local removed, more = histories().trim(history, tonumber(ARGV[3]))
return { removed, more and 1 or 0 }
