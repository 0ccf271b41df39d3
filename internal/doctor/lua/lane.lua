-- Checks a job in the lane of a subscriber's batches.
--
-- ARGV     1 namespace, 2 '1' to fix it, 3 token, 4 job, 5 until when the first of a lane may be
--          put off, but by its subscriber's throttle (ms)
-- Returns  {} or one of {'gone'}, {'alien'}, {'unwoken'}
-- Keeps    the others their turn: who waits behind one that is removed is woken
local token, job, latest = ARGV[3], ARGV[4], tonumber(ARGV[5])
local lane, bid = lane_of_subscriber(token), batch_of('main', job)
if not redis.call('ZSCORE', lane, job) or (bid and is_original(bid)) then return {} end

local wrong = 'gone' -- what is no batch's job
if bid then wrong = wrong_for(token, bid) end
if wrong then
  if fix then leave_lane(lane, 'main', job, noted_max_in_flight()) end
  return { wrong }
end

-- Whoever leaves a lane wakes the next, and whoever ends a throttle the first, in the same step. So
-- a first that waits for longer than its throttle, and than one that could not be taken, stands
-- behind somebody who has left without a word.
if redis.call('ZRANK', lane, job) ~= 0 then return {} end
local due = tonumber(redis.call('ZSCORE', scheduled_key('main'), job) or '')
if not due or due <= latest then return {} end
local throttled_until = redis.call('HGET', delivery_key(token), 'throttled_until')
if due <= (tonumber(throttled_until or '') or 0) then return {} end
if fix then wake_lane(lane, 'main', 1) end
return { 'unwoken' }
