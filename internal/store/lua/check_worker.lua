-- Checks that a worker has at most one pending job, and is where a scrub finds it.
--
-- ARGV     1 namespace, 2 '1' to fix it, 3 queue, 4 worker
-- Returns  what is wrong: {'worker_foreign'}, or of 'worker_unlisted', 'worker_busy'
-- Keeps    the job that the worker is running, the last; the others are put back
local queue, worker = ARGV[3], ARGV[4]
local pending = pending_key(queue, worker)
local jobs = redis.call('LRANGE', pending, -100, -1)
local found = {}
for _, job in ipairs(jobs) do -- an array of two that begins with a short string
  local array, name = string.byte(job, 1, 2)
  if array ~= 146 or not name or name < 160 or name > 191 then return { 'worker_foreign' } end
end
if #jobs > 0 and redis.call('SISMEMBER', pending_index_key(queue), worker) == 0 then
  table.insert(found, 'worker_unlisted')
  if fix then redis.call('SADD', pending_index_key(queue), worker) end
end
if #jobs > 1 then
  table.insert(found, 'worker_busy')
  for i = 1, #jobs - 1 do
    if fix then
      redis.call('LREM', pending, 1, jobs[i])
      if jobs[i] ~= jobs[#jobs] then redis.call('RPUSH', instant_key(queue), jobs[i]) end
    end
  end
end
return found
