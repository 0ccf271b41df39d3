-- Deletes a job type: it takes no job any more. type_tend.lua does the rest.
--
-- ARGV     1 namespace, 2 name, 3 '1' if jobs that have not ended are to be cancelled
-- Returns  {1}; {0, 'unknown'}; {0, 'has jobs'}
local name = ARGV[2]
local found = redis.call('HMGET', job_type_key(name), 'revision', 'deleted')
if not found[1] or found[2] == '1' then return { 0, 'unknown' } end
if ARGV[3] ~= '1' and redis.call('ZCARD', open_jobs_key(name)) > 0 then return { 0, 'has jobs' } end
allow_when_full()
redis.call('HSET', job_type_key(name), 'deleted', '1')
redis.call('HDEL', schedules_key(), name)
return { 1 }
