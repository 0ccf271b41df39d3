-- Removes moves of a machine that were published.
--
-- ARGV     1 namespace, 2 machine, 3 number of the first, 4 how many
-- Returns  how many are left
allow_when_full()
local length = redis.call('LLEN', machine_outbox_key(ARGV[2]))
local count = tonumber(redis.call('HGET', machine_published_key(ARGV[2]), 'count')) or 0
if count - length + 1 ~= tonumber(ARGV[3]) then return length end
redis.call('LTRIM', machine_outbox_key(ARGV[2]), ARGV[4], -1)
return length - math.min(length, tonumber(ARGV[4]))
