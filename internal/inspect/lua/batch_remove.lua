-- Removes a batch of a subscriber with all that points to it, unless it is in flight.
--
-- ARGV     1 namespace, 2 subscriber's token, 3 UID of the batch, 4 now (ms)
-- Returns  {1, the number of its events, 0}. {0, 'unknown'} when there is no such batch; {0, 'in
--          flight'} when it is being delivered
-- Keeps    a batch goes with its job, its index entry, its gauges and its place in the lane; the
--          next of the lane is woken. A job deep inside the instant queue stays, as it takes long
--          to find, and goes when it comes up
local token, bid = ARGV[2], ARGV[3]
local header = redis.pcall('LRANGE', batch_key(bid), 0, HEADER - 1) -- a table in any case
if not header[3] or holder_of(header[1]) ~= token then return { 0, 'unknown' } end
local job = job_of(bid)
for _, worker in ipairs(redis.call('SMEMBERS', pending_index_key('main'))) do
  if redis.call('LPOS', pending_key('main', worker), job) then return { 0, 'in flight' } end
end

allow_when_full()
local events = events_of(bid)
remove_batch(bid, token, events, noted_max_in_flight(), header[3] ~= '0', true)
remove_batch_job(bid)
return { 1, events, 0 }
