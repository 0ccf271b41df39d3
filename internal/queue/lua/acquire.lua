-- Takes the next instant job of a queue for a worker, with its payload.
--
-- ARGV     1 namespace, 2.. see read_call, then see acquire
-- Returns  {discarded, poisoned, job, payload, ahead}: see acquire
-- Keeps    at most one pending job of a worker, and the worker in the index of workers that may
--          have one; the order of each lane
-- Cost     commands: 11 for a batch of one event; 2 more where batches may be
--          taken ahead, and an EXISTS
allow_when_full()
local call, first = read_call()
give_back_all(call, first)
-- It has a job already if the reply to an earlier call was lost.
local held = redis.call('LINDEX', pending_key(call.queue, call.worker), '-1')
local discarded, poisoned, job, payload, ahead = acquire(call, first, held)
if job and redis.call('SADD', pending_index_key(call.queue), call.worker) == 1 then
  redis.call('HSET', workers_key(), call.worker, call.now)
end
return { discarded, poisoned, job, payload, ahead }
