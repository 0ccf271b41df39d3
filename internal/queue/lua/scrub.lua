-- Requeues a worker's pending jobs, to be the next taken, if it has been silent.
--
-- ARGV     1 namespace, 2 worker, 3 silent since (ms): a worker active after that is left as it
--          is, 4 '1' to remove it from `workers` too, 5.. queues
-- Returns  the number of jobs requeued, -1 when the worker was active
-- Keeps    a pending job's worker in the index until the job is back
local worker = ARGV[2]
local active = tonumber(redis.call('HGET', workers_key(), worker))
if active and active > tonumber(ARGV[3]) then return -1 end
allow_when_full()
local jobs = 0
for i = 5, #ARGV do
  local queue = ARGV[i]
  local pending = pending_key(queue, worker)
  for _, job in ipairs(redis.call('LRANGE', pending, 0, -1)) do
    redis.call('RPUSH', instant_key(queue), job)
    jobs = jobs + 1
  end
  redis.call('DEL', pending)
  redis.call('SREM', pending_index_key(queue), worker)
end
if ARGV[4] == '1' then redis.call('HDEL', workers_key(), worker) end
return jobs
