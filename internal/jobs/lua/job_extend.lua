-- Moves the deadline of a job that its service has.
--
-- ARGV     1 namespace, 2 id, 3 type, 4 the attempt, 5 the new deadline and 6 now (µs), 7 the
--          client, '' for root
-- Returns  {1}; {0, 'unknown'}; {0, 'not client'}; {0, 'not in progress'}; {0, 'stale'}
local job = read_job(ARGV[2])
if not job or job.type ~= ARGV[3] then return { 0, 'unknown' } end
if is_for_others(job.type, ARGV[7]) then return { 0, 'not client' } end
if job.status ~= 'in-progress' then return { 0, 'not in progress' } end
if tonumber(ARGV[4]) ~= job.attempts then return { 0, 'stale' } end
allow_when_full()
redis.call('HSET', job_key(job.id), 'deadline', ARGV[5], 'updated_at', ARGV[6])
-- The worker that takes the entry next puts off one that has come up already; the worker that has a
-- job puts off its own.
if job.worker == '' then
  redis.call('ZADD', scheduled_key(QUEUE), 'XX', due(tonumber(ARGV[5])), job.entry)
end
return { 1 }
