-- Removes a subscriber and its subscriptions. Its current batch gets no more events, and comes up
-- at once, like those whose turn it is; all its batches are dropped as they come up, and its dead
-- letters by the housekeeping. Its replays go. Returns whether there was such a subscriber.
local function remove_subscriber(token)
  if redis.call('SISMEMBER', subscribers_key(), token) == 0 then return false end
  for _, bid in ipairs(redis.call('SMEMBERS', current_key(token))) do
    make_instant('main', job_of(bid))
  end
  redis.call('DEL', current_key(token))
  pcall(wake_subscriber, token) -- its throttle is over; a lane of another type stops nothing
  if #generations().all(token) > 1 or generation_of(token) ~= '' then generations().forget(token) end
  for _, name in ipairs(redis.call('SMEMBERS', subscriber_topics_key(token))) do
    redis.call('SREM', topic_subscribers_key(name), token)
  end
  remove_replays(token)
  redis.call('DEL', subscriber_topics_key(token), subscriber_key(token), delivery_key(token),
    options_key(token), attempts_key(token))
  redis.call('SREM', subscribers_key(), token)
  return true
end
