-- Sets a subscriber's gauges right, if they are still what they were when its batches were counted.
--
-- ARGV     1 namespace, 2 '1' to fix it, 3 token, the gauges read ('' for none): 4 of batches and 5
--          of events; what they must be: 6 and 7
-- Returns  1 if it did
local token = ARGV[3]
local wanted = {
  [batch_gauge_key()] = { ARGV[4], ARGV[6] },
  [event_gauge_key()] = { ARGV[5], ARGV[7] },
}
for key, values in pairs(wanted) do
  if (redis.call('HGET', key, token) or '') ~= values[1] then return 0 end
end
for key, values in pairs(wanted) do
  redis.call('HDEL', key, token)
  if values[2] ~= '0' then redis.call('HSET', key, token, values[2]) end
end
return 1
