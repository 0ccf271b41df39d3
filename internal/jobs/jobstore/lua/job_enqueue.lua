-- Enqueues jobs of a type, all or none. A job that is queued or in progress stays as it is.
--
-- ARGV     1 namespace, 2 type, 3 now (µs), 4 traceparent, may be empty, 5.. of each job its id,
--          its data, when it may be taken and when it expires (µs, 0 for now and for never)
-- Returns  {1, job, ...}: {its attempts, its sequence (text)} of a job that was added, any other as
--          show_job; {0, 'unknown type'}; {0, 'archived', index}; {0, 'other type', index}, from 0
-- Keeps    a job in the queue's index, in its type's list and in one state
-- Cost     commands: 2, and up to 8 for each job
local name, now = ARGV[2], tonumber(ARGV[3])
local type = read_type(name)
if not type or type.deleted then return { 0, 'unknown type' } end
local there, added = {}, 0
for i = 5, #ARGV, 4 do
  local found = redis.call('HMGET', job_key(ARGV[i]), 'type', 'status')
  if found[1] and found[1] ~= name then return { 0, 'other type', (i - 5) / 4 } end
  there[i] = found[2]
  if not found[2] then added = added + 1 end
  if found[2] and found[2] ~= 'queued' and found[2] ~= 'in-progress' then
    return { 0, 'archived', (i - 5) / 4 }
  end
end
local reply = { 1 }
local place = added > 0 and next_number(type, now, added)
for i = 5, #ARGV, 4 do
  if there[i] then
    table.insert(reply, show_job(ARGV[i]))
  else
    add_job(type, ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[4], place, now)
    table.insert(reply, { type.attempts, exact(place) })
    place = place + 1
  end
end
return reply
