-- Enqueues a copy of a job that is in progress or archived.
--
-- ARGV     1 namespace, 2 id, 3 type, may be empty, 4 id of the copy, 5 now (µs)
-- Returns  {1, the copy, as show_job}; {0, 'unknown'}; {0, 'queued'}; {0, 'unknown type'}
local job = read_job(ARGV[2])
local data = job and redis.call('GET', data_key(job.id))
if not data or (ARGV[3] ~= '' and job.type ~= ARGV[3]) then return { 0, 'unknown' } end
if job.status == 'queued' then return { 0, 'queued' } end
local type = read_type(job.type)
if not type or type.deleted then return { 0, 'unknown type' } end
local now = tonumber(ARGV[5])
add_job(type, ARGV[4], data, '0', job.expires, '', next_number(type, now), now)
return { 1, show_job(ARGV[4]) }
