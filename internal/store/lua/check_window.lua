-- Reads a part of a list of instant jobs, and where another of its entries stands at that moment. (A transaction
-- would do, but a full Redis refuses those.)
--
-- ARGV     1 namespace, 2 queue, 3 marker, 4 how far from the left end it is looked for, 5 first and 6 last index
-- Returns  {index of the marker, entries}, false when the marker was not found
local instant = instant_key(ARGV[2])
local at = redis.call('LPOS', instant, ARGV[3], 'MAXLEN', ARGV[4])
if not at then return false end
return { at, redis.call('LRANGE', instant, ARGV[5], ARGV[6]) }
