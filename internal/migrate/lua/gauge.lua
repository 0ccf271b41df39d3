-- Removes a subscriber's gauges that are 0, which the Ruby original leaves.
--
-- ARGV     1 namespace, 2 token
-- Returns  the number of gauges removed
local removed = 0
for _, gauge in ipairs({ batch_gauge_key(), event_gauge_key() }) do
  if redis.call('HGET', gauge, ARGV[2]) == '0' then
    removed = removed + redis.call('HDEL', gauge, ARGV[2])
  end
end
return removed
