-- Puts off a job that failed; a batch that failed gives up its turn.
--
-- ARGV     1 namespace, 2 queue, 3 worker, 4 job, 5 health points for the subscriber,
--          6 most batches of one subscriber that may be delivered at once,
--          7 now (ms), 8 when to try again (ms), 9 until when its subscriber is left alone (ms), 0 if it is not, 10 what
--          failed: 'endpoint', 'batch' if the endpoint refused only that, '' if it is neither's fault
-- Returns  1, or 0 when the job is not this worker's (any more): nothing is changed
-- Keeps    the job in one state; throttled_until, if only in the past, where a delivery has failed since the last that
--          succeeded. It begins with a write that takes no memory, so a full Redis does not refuse it
local queue, job = ARGV[2], ARGV[4]
local pending = pending_key(queue, ARGV[3])
local STATE_LIFE = 2 * 86400000 -- ms: what nobody removes, because something else removed its batch or subscriber, expires
if redis.call('LINDEX', pending, -1) ~= job then return 0 end
local bid = batch_of(queue, job)
local header = bid and redis.call('LRANGE', batch_key(bid), 0, HEADER - 1) or {}
local token = header[1]
redis.call('RPOP', pending)
if bid and not token then -- dropped in the meantime
  redis.call('SREM', jobs_index_key(queue), job)
else
  redis.call('ZADD', scheduled_key(queue), ARGV[8], job)
end
if not token then return 1 end

leave_line(token, bid, tonumber(ARGV[6]))
local subscriber = redis.call('HMGET', subscriber_key(token), 'callback', 'health_points', 'throttled_until')
if not subscriber[1] then return 1 end -- it is gone, and stays so
heal(token, subscriber[2], tonumber(ARGV[5]))

local now, throttled_until, failed = ARGV[7], ARGV[9], ARGV[10]

-- Notes what a failed batch waits for. One that fails with its endpoint, though that was well and the batch has failed
-- before, is taken for its cause, as one that makes it hang: it is put off like one refused.
local function note_failed()
  local before = tonumber(redis.pcall('ZSCORE', failed_key(token), bid))
  local attempts = tonumber(header[3]) or 0
  if failed == 'batch' or (before and before >= REFUSED) or (attempts > 1 and not subscriber[3]) then
    redis.pcall('ZADD', failed_key(token), refused_times(attempts), bid)
    redis.pcall('HSETNX', delivery_key(token), 'refused_since', now)
    if failed == 'batch' then redis.pcall('HINCRBY', delivery_key(token), 'refusals', 1) end
    redis.call('PEXPIRE', delivery_key(token), STATE_LIFE)
  else
    redis.pcall('ZADD', failed_key(token), failed_with_endpoint(header[2]), bid)
  end
  redis.call('PEXPIRE', failed_key(token), STATE_LIFE)
end

if failed ~= '' then
  note_failed()
  if throttled_until == '0' and (subscriber[3] or '0') == '0' then throttled_until = now end
end
-- Of several that were under way, the one that asks for the longest rest gets it.
if tonumber(throttled_until) < (tonumber(subscriber[3]) or 0) then throttled_until = '0' end
if throttled_until ~= '0' then redis.call('HSET', subscriber_key(token), 'throttled_until', throttled_until) end
return 1
