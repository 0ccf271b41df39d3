-- Reads where an outbox ends: what is put into it from now on comes after that.
--
-- ARGV     1 namespace, 2 number of the partition
-- Returns  {1, what it is counted by, how many events have been put into it, ever}; {1} if it is
--          empty, or that is not known
allow_when_full()
local waiting = redis.call('LLEN', outbox_key(ARGV[2]))
local carried, id = read_carried(ARGV[2])
if waiting == 0 or id == '' then return { 1 } end
return { 1, id, carried + waiting }
