-- Queues a test event for a subscriber: a batch of its own, beside the lane. The subscriber gets a
-- version of its options, if it has none, so that the step that takes the batch looks for its
-- state.
--
-- ARGV     1 namespace, 2 token, 3 now (ms), 4 UID of the batch, 5 version of its
--          options, should it need one, 6 packed event
-- Returns  {1}; {0, 'not subscribed'}; {0, 'test waits'} while another does
-- Keeps    the batch with its job, its index entry and its gauges
local token, now, bid = holder_of(ARGV[2]), ARGV[3], ARGV[4]
if redis.call('SISMEMBER', subscribers_key(), token) == 0 then return { 0, 'not subscribed' } end
local delivery = delivery_key(token)
local waiting = redis.call('HGET', delivery, 'test')
if waiting and redis.call('EXISTS', batch_key(waiting)) == 1 then return { 0, 'test waits' } end
redis.call('HSET', delivery, 'test', bid)
need_options_version(token, ARGV[5])
redis.call('RPUSH', batch_key(bid), token, now, 0, ARGV[6])
redis.call('HSET', batch_state_key(bid), 'test', 1)
add_batch(bid, token, now, 1)
return { 1 }
