-- Changes a subscription: omitted fields keep their value. See subscriber_put.lua; but the bus does
-- not try a subscriber at once unless the request has a callback, uuid or max_bytes.
--
-- ARGV     1 namespace, 2.. see lib/subscriptions.lua
-- Returns  as subscriber_put.lua; {0, 'not subscribed'}
-- Keeps    as subscriber_put.lua
local sent = read_subscription()
local name = redis.call('HGET', tokens_key(), sent.token)
if not name then return { 0, 'token unknown' } end
if redis.call('SISMEMBER', subscribers_key(), holder_of(sent.token)) == 0 then
  return { 0, 'not subscribed' }
end
return put_subscription(sent, name)
