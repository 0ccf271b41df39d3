-- Reads to which topics the machines' own client is subscribed.
--
-- ARGV     1 namespace, 2 its name, 3 the callback of its subscription, 4 its tokens in other
--          partitions, see own_token
-- Returns  the topics; nothing if there is no such client
local token = own_token(ARGV[2], ARGV[3], ARGV[4])
if not token then return {} end
return redis.call('SMEMBERS', subscriber_topics_key(token))
