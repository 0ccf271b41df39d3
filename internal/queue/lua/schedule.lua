-- Makes due jobs instant, the oldest deadline first.
--
-- ARGV     1 namespace, 2 queue, 3 now (ms), 4 max jobs to move
-- Returns  the number of jobs moved
-- Cost     2 commands, and 2 for each job moved
allow_when_full()
local queue = ARGV[2]
local due = redis.call('ZRANGEBYSCORE', scheduled_key(queue), '-inf', ARGV[3], 'LIMIT', 0, ARGV[4])
for _, job in ipairs(due) do
  redis.call('LPUSH', instant_key(queue), job)
  redis.call('ZREM', scheduled_key(queue), job)
end
return #due
