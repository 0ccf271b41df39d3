-- Archives a job as cancelled.
--
-- ARGV     1 namespace, 2 id, 3 type, 4 now (µs), 5 the client, '' for root
-- Returns  {1, the status that it had}, 'cancelled' if it was that; {0, 'unknown'};
--          {0, 'not client'}; {0, 'archived'}
local job = read_job(ARGV[2])
if not job or job.type ~= ARGV[3] then return { 0, 'unknown' } end
if is_for_others(job.type, ARGV[5]) then return { 0, 'not client' } end
if job.status == 'cancelled' then return { 1, job.status } end
local type = job.open and read_type(job.type)
if not type then return { 0, 'archived' } end
allow_when_full()
archive(type, job, 'cancelled', job.attempts, tonumber(ARGV[4]))
return { 1, job.status }
