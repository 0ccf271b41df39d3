-- Reads to which topics the machines' own client is subscribed.
--
-- ARGV     1 namespace, 2 its name, 3 the callback of its subscription
-- Returns  the topics; nothing if there is no such client
local token = own_token(ARGV[2], ARGV[3])
if not token then return {} end
return redis.call('SMEMBERS', subscriber_topics_key(token))
