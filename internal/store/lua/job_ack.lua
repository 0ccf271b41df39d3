-- Ends a job that is done and, when it delivered a batch, removes the batch.
--
-- ARGV     1 namespace, 2 queue, 3 worker, 4 job, 5 health points for the subscriber,
--          6 most batches of one subscriber that may be delivered at once, 7 now (ms), 8 events delivered
-- Returns  1, or 0 when the job is not this worker's (any more): nothing is changed
-- Keeps    a batch goes with its job, its index entry, its gauges and its place in line. It
--          begins with a write that takes no memory, so a full Redis does not refuse it
local queue, job, abreast = ARGV[2], ARGV[4], tonumber(ARGV[6])
local pending = pending_key(queue, ARGV[3])
if redis.call('LINDEX', pending, -1) ~= job then return 0 end
local bid = batch_of(queue, job)
local header = bid and redis.call('LRANGE', batch_key(bid), 0, HEADER - 1) or {}
local token, failures = header[1], (tonumber(header[3]) or 1) - 1 -- the attempts count this one
local refused = token and was_refused(token, bid, failures)
redis.call('RPOP', pending)
redis.call('SREM', jobs_index_key(queue), job)
if not token then return 1 end

remove_batch(bid, token, abreast, failures > 0)
local subscriber = redis.call('HMGET', subscriber_key(token), 'callback', 'health_points', 'throttled_until')
if not subscriber[1] then return 1 end -- it is gone, and stays so
heal(token, subscriber[2], tonumber(ARGV[5]))
if subscriber[3] then -- those that wait for the end of that need not any more
  end_failure(token, tonumber(ARGV[7]))
  call_line(token, 0, abreast - 1)
end
if refused then retry_next(token) end
if ARGV[8] ~= '0' then redis.call('HINCRBY', subscriber_key(token), 'events_sent', ARGV[8]) end
return 1
