-- Enqueues the job of a type's schedule for a time, unless that was done.
--
-- ARGV     1 namespace, 2 type, 3 the time that was enqueued last, or since when there is a
--          schedule, as it was read, and 4 that of the job (µs), 5 id of the job, 6 now (µs)
-- Returns  1, 0 when somebody else did it, or the schedule was changed
local name = ARGV[2]
if redis.call('HGET', schedules_key(), name) ~= ARGV[3] then return 0 end
local type = read_type(name)
if not type or type.deleted then return 0 end
redis.call('HSET', schedules_key(), name, ARGV[4])
if redis.call('EXISTS', job_key(ARGV[5])) == 1 then return 0 end
local data = redis.call('HGET', type_key(name), 'schedule_data')
if not data or data == '' then data = 'null' end
local now = tonumber(ARGV[6])
add_job(type, ARGV[5], data, '0', '0', '', next_number(type, now), now)
return 1
