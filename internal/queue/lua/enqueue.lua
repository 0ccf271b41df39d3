-- Adds a job to a queue, unless it is there already, in any state.
--
-- ARGV     1 namespace, 2 queue, 3 job, 4 deadline (ms), 0 for an instant job
-- Returns  1, or 0 when the job is there
-- Cost     3 commands
allow_when_full()
local queue, job, deadline = ARGV[2], ARGV[3], ARGV[4]
if redis.call('SADD', jobs_index_key(queue), job) == 0 then return 0 end
if deadline == '0' then
  redis.call('LPUSH', instant_key(queue), job)
else
  redis.call('ZADD', scheduled_key(queue), deadline, job)
end
return 1
