-- Ends one subscription of a subscriber, which remains a subscriber.
--
-- ARGV     1 namespace, 2 token, 3 topic
-- Returns  {1}; {0, 'not subscribed'} to the topic; {0, 'topic unknown'}
local token, name = holder_of(ARGV[2]), ARGV[3]
if redis.call('SISMEMBER', topics_key(), name) == 0 then return { 0, 'topic unknown' } end
redis.call('SREM', topic_subscribers_key(name), token)
local ended = redis.call('SREM', subscriber_topics_key(token), name)
if ended == 0 then return { 0, 'not subscribed' } end
return { 1 }
