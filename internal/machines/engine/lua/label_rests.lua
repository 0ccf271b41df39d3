-- Checks whether no worker has work to do for a label now, or there is no such label.
--
-- ARGV     1 namespace, 2 machine, 3 name
-- Returns  1 or 0
-- Cost     commands: 2, or 3 if its entry is in the queue
local found = redis.call('HMGET', label_key(ARGV[2], ARGV[3]), 'state', 'asked')
if not found[1] then return 1 end
local next = next_look(ARGV[2], ARGV[3])
return (not next or (tonumber(next) > 0 and not found[2])) and 1 or 0
