-- Notes once more that a worker has taken a job, so that replicas confirm that.
--
-- ARGV     1 namespace, 2 id, 3 type, 4 worker
-- Returns  {1}; {0, 'not in progress'} if the worker does not have it any more
local job = read_job(ARGV[2])
if not job or job.type ~= ARGV[3] or job.worker ~= ARGV[4] then return { 0, 'not in progress' } end
allow_when_full()
redis.call('HSET', job_key(job.id), 'worker', job.worker)
return { 1 }
