-- Puts off a job that failed; a batch that failed gives up its turn.
--
-- ARGV     1 namespace, 2 queue, 3 worker, 4 job, 5 health points for the subscriber,
--          6 most batches of one subscriber that may be delivered at once,
--          7 when to try again (ms), 8 until when its subscriber is left alone (ms), 0 if it is not
-- Returns  1, or 0 when the job is not this worker's (any more): nothing is changed
-- Keeps    the job in one state; it begins with a write that takes no memory, so a full Redis does not refuse it
local queue, job = ARGV[2], ARGV[4]
local pending = pending_key(queue, ARGV[3])
if redis.call('LINDEX', pending, -1) ~= job then return 0 end
local bid = batch_of(queue, job)
local token = bid and redis.call('LINDEX', batch_key(bid), 0)
redis.call('RPOP', pending)
if bid and not token then -- dropped in the meantime
  redis.call('SREM', jobs_index_key(queue), job)
else
  redis.call('ZADD', scheduled_key(queue), ARGV[7], job)
end
if not token then return 1 end

leave_line(token, bid, tonumber(ARGV[6]))
local subscriber = redis.call('HMGET', subscriber_key(token), 'callback', 'health_points')
if not subscriber[1] then return 1 end -- it is gone, and stays so
heal(token, subscriber[2], tonumber(ARGV[5]))
if ARGV[8] ~= '0' then redis.call('HSET', subscriber_key(token), 'throttled_until', ARGV[8]) end
return 1
