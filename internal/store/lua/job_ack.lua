-- Ends a job that is done and, when it delivered a batch, removes the batch.
--
-- ARGV     1 namespace, 2 queue, 3 worker, 4 job, 5 health points for the subscriber,
--          6 most batches of one subscriber that may be delivered at once, 7 events delivered
-- Returns  1, or 0 when the job is not this worker's (any more): nothing is changed
-- Keeps    a batch goes with its job, its index entry, its gauges and its place in line
local queue, job = ARGV[2], ARGV[4]
local pending = pending_key(queue, ARGV[3])
if redis.call('LINDEX', pending, -1) ~= job then return 0 end
allow_when_full()
local bid = batch_of(queue, job)
local token = bid and redis.call('LINDEX', batch_key(bid), 0)
if token then
  remove_batch(bid, token, tonumber(ARGV[6]))
  heal(token, tonumber(ARGV[5]))
  redis.call('HDEL', subscriber_key(token), 'throttled_until')
  if ARGV[7] ~= '0' and redis.call('EXISTS', subscriber_key(token)) == 1 then
    redis.call('HINCRBY', subscriber_key(token), 'events_sent', ARGV[7])
  end
end
redis.call('LREM', pending, 1, job)
redis.call('SREM', jobs_index_key(queue), job)
return 1
