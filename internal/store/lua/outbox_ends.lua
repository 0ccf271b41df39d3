-- Reads where an outbox ends: events put into it from now on come after that.
--
-- ARGV     1 namespace, 2 number of the partition
-- Returns  {1, identity of the count, how many events have ever been put into it}; {1} if it is
--          empty, or the count is not known
allow_when_full()
local waiting = redis.call('LLEN', outbox_key(ARGV[2]))
local carried, id = read_carried(ARGV[2])
if waiting == 0 or id == '' then return { 1 } end
return { 1, id, carried + waiting }
