-- Checks that a worker has at most one pending job, and is where a scrub finds it.
--
-- ARGV     1 namespace, 2 '1' to fix it, 3 queue, 4 worker
-- Returns  what is wrong, of 'unlisted', 'busy'
-- Keeps    the job that the worker is running, the last; the others are put back
local queue, worker = ARGV[3], ARGV[4]
local pending = pending_key(queue, worker)
local jobs = redis.call('LRANGE', pending, -100, -1)
local found = {}
if #jobs > 0 and redis.call('SISMEMBER', pending_index_key(queue), worker) == 0 then
  table.insert(found, 'unlisted')
  if fix then redis.call('SADD', pending_index_key(queue), worker) end
end
if #jobs > 1 then
  table.insert(found, 'busy')
  for i = 1, fix and #jobs - 1 or 0 do
    redis.call('LREM', pending, 1, jobs[i])
    if jobs[i] ~= jobs[#jobs] then redis.call('RPUSH', instant_key(queue), jobs[i]) end
  end
end
return found
