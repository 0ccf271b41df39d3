-- Removes the test event that waits for a subscriber, so that it is not delivered as an ordinary
-- one if the subscriber comes back.
local function remove_test(token)
  local bid = redis.pcall('HGET', delivery_key(token), 'test')
  if type(bid) ~= 'string' or not BATCH.exists(bid) or is_in_flight(bid) then return end
  remove_batch(bid, token, 1, noted_max_in_flight(), false, false)
  remove_batch_job(bid)
end

-- Removes a subscriber and its subscriptions. Its current batches get no more events, and come up
-- at once, like the batches whose turn it is; all its batches are dropped as they come up, and its
-- dead letters by the housekeeping. Its replays end. Returns whether there was such a subscriber.
local function remove_subscriber(token)
  if redis.call('SISMEMBER', subscribers_key(), token) == 0 then return false end
  remove_test(token)
  local lanes = subscriber_lanes()
  for _, bid in ipairs(lanes.current_batches(token)) do make_instant('main', job_of(bid)) end
  lanes.forget(token)
  -- Its throttle is over; a lane of another type stops nothing.
  pcall(wake_lane, lane_of_subscriber(token), 'main', noted_max_in_flight())
  for _, name in ipairs(redis.call('SMEMBERS', subscriber_topics_key(token))) do
    redis.call('SREM', topic_subscribers_key(name), token)
  end
  remove_replays(token)
  redis.call('DEL', subscriber_topics_key(token), subscriber_key(token), delivery_key(token),
    options_key(token), attempts_key(token), gaps_key(token))
  redis.pcall('SREM', retention_key(), token)
  redis.call('SREM', subscribers_key(), token)
  return true
end
