-- Puts a job back that was fetched and could not be handed out. Its attempt does not count.
--
-- ARGV     1 namespace, 2 id, 3 type, 4 the attempt, 5 its deadline and 6 now (µs)
-- Returns  {1}; {0, 'unknown'}; {0, 'not in progress'}; {0, 'stale'} another attempt has begun
local job = read_job(ARGV[2])
local type = read_type(ARGV[3])
if not job or job.type ~= ARGV[3] or not type then return { 0, 'unknown' } end
if job.status ~= 'in-progress' or job.worker ~= '' then return { 0, 'not in progress' } end
if tonumber(ARGV[4]) ~= job.attempts or tonumber(ARGV[5]) ~= job.deadline then
  return { 0, 'stale' }
end
allow_when_full()
requeue(type, job, job.attempts, job.run_after, tonumber(ARGV[6]))
local began = string.match(job.tries, '^[^\30]*\30([^\30]*)') -- the attempt before it
redis.call('HSET', job_key(job.id), 'started', began or '')
return { 1 }
