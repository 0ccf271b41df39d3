-- Removes a batch of a subscriber with all that refers to it, unless it is in flight. Its events
-- become a dead letter if the subscriber keeps dead letters, unless they are a test event; else
-- they are lost.
--
-- ARGV     1 namespace, 2 subscriber's token, 3 UID of the batch, 4 now (ms), 5 first 16 characters
--          of the UID of a gap notice
-- Returns  {1, the number of its events, 1 if they are a dead letter, how many are lost}.
--          {0, 'unknown'} when there is no such batch; {0, 'in flight'} when it is being delivered
-- Keeps    a batch is removed with its job, its index entry, its gauges and its place in the lane;
--          the next of the lane is woken. A job deep inside the instant queue stays, as it takes
--          long to find, and is removed when it comes up
local token, bid, now = ARGV[2], ARGV[3], ARGV[4]
local header = redis.pcall('LRANGE', batch_key(bid), 0, HEADER - 1) -- a table in any case
if not header[3] or holder_of(header[1]) ~= token then return { 0, 'unknown' } end
if is_in_flight(bid) then return { 0, 'in flight' } end

-- The webhook-id of exactly these events, sent before or not.
local function webhook_id(state, events)
  if state[2] then return state[2] end
  if (state[1] or '0') == '0' then return bid end
  return bid .. '-' .. state[1] .. '-' .. events
end

allow_when_full()
local events, buried, lost, bytes = events_of(bid), 0, 0, nil
local state = redis.pcall('HMGET', batch_state_key(bid), 'revision', 'webhook_id', 'test')
local is_test, notices = state[3] == '1', gaps()
if not is_test and redis.call('HEXISTS', options_key(token), 'dead_letters') == 1 then
  local cause = { bid, 'removed', '', '', '', webhook_id(state, events) }
  notices.close(token, batch_key(bid))
  bytes = letters().bury(bid, token, now, cause)
  buried = 1
elseif not is_test then
  lost = notices.count(token, batch_key(bid), events)
  notices.note_counted(now, ARGV[5], 'removed')
end
remove_batch(bid, token, events, noted_max_in_flight(), header[3] ~= '0', true, bytes)
remove_batch_job(bid)
return { 1, events, buried, lost }
