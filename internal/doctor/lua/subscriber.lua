-- Checks that a subscriber has a callback, and is in the set of subscribers.
--
-- ARGV     1 namespace, 2 '1' to fix it, 3 token
-- Returns  {}, {'unlisted'}, {'silent'} (listed, without a callback) or {'remains'} (neither)
-- Keeps    whoever has a callback, which is all that publish asks for
local token = ARGV[3]
local listed = redis.call('SISMEMBER', subscribers_key(), token) == 1
local callback = has_callback(token)
if listed and callback then return {} end
if not listed and redis.call('EXISTS', subscriber_key(token)) == 0 then return {} end
if fix then
  redis.call('SADD', subscribers_key(), token)
  if not callback then remove_subscriber(token) end
end
if callback then return { 'unlisted' } end
return { listed and 'silent' or 'remains' }
