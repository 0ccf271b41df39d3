-- Checks one batch that is listed as a subscriber's current, or in its line.
--
-- ARGV     1 namespace, 2 '1' to fix it, 3 token, 4 batch, 5 until when the first of a line may be put off, but by its subscriber's being left alone (ms)
-- Returns  what is wrong, of 'current_gone', 'current_alien', 'current_many', 'line_gone', 'line_alien', 'line_uncalled',
--          'current_foreign', 'line_foreign'
-- Keeps    a batch that is no longer current its job, with which it comes up; who waited behind one that is
--          struck out of the line is called
local token, bid = ARGV[3], ARGV[4]
local current = redis.call('SISMEMBER', current_key(token), bid) == 1
local lane = lane_of_subscriber(token)
local in_line = redis.call('ZSCORE', lane, job_of(bid))
if is_original(bid) then return {} end

-- Whether it is the first of the line, and waits to be called all the same. Whoever leaves a line calls the next, and whoever ends a
-- throttle the first, in the same step: so a first that is scheduled later than that for its throttle, or because it could not be taken, was
-- put behind somebody who has left without a word.
local function is_uncalled()
  if redis.call('ZRANK', lane, job_of(bid)) ~= 0 then return false end
  local deadline = tonumber(redis.call('ZSCORE', scheduled_key('main'), job_of(bid)) or '')
  if not deadline or deadline <= tonumber(ARGV[5]) then return false end
  local throttled_until = redis.pcall('HGET', delivery_key(token), 'throttled_until')
  return type(throttled_until) ~= 'string' or deadline > (tonumber(throttled_until) or 0)
end

local wrong, found = nil, {}
if not is_token(token) or not is_uid(bid) or not (is_known(token) or has_callback(token)) then
  if current then table.insert(found, 'current_foreign') end
  if in_line then table.insert(found, 'line_foreign') end
  return found
end
if redis.call('EXISTS', batch_key(bid)) == 0 then
  wrong = 'gone'
elseif is_list(batch_key(bid)) and holder_of(redis.call('LINDEX', batch_key(bid), 0)) ~= token then
  wrong = 'alien'
end
if current and wrong then
  table.insert(found, 'current_' .. wrong)
elseif current and redis.call('SCARD', current_key(token)) > 1 then
  -- The newest stays; the last UID, of those of one time.
  local score = tonumber(redis.call('ZSCORE', batches_index_key(), bid)) or 0
  for _, other in ipairs(redis.call('SMEMBERS', current_key(token))) do
    local others = tonumber(redis.call('ZSCORE', batches_index_key(), other)) or 0
    if (others > score or (others == score and other > bid)) and is_list(batch_key(other))
      and redis.call('LINDEX', batch_key(other), 0) == token then
      table.insert(found, 'current_many')
      break
    end
  end
end
if fix and #found > 0 then redis.call('SREM', current_key(token), bid) end
if in_line and wrong then
  table.insert(found, 'line_' .. wrong)
  if fix then leave_lane(lane, 'main', job_of(bid), noted_max_in_flight()) end
elseif in_line and is_uncalled() then
  table.insert(found, 'line_uncalled')
  if fix then wake_lane(lane, 'main', 1) end
end
return found
