-- Ends subscriptions of the machines' own client that its definitions do not need; with the last of
-- them, it is no subscriber any more.
--
-- ARGV     1 namespace, 2 its name, 3 the callback of its subscription, 4 its tokens in other
--          partitions, see own_token, 5 the key of the definitions, 6 the version of those that do
--          not need them, 7.. topics
-- Returns  {1}; {0, 'changed'} if there are other definitions now, or are about to be: the first
--          partition may have them already
local found = redis.call('HMGET', ARGV[5], 'version', 'preparing')
if found[1] ~= ARGV[6] or found[2] then return { 0, 'changed' } end
allow_when_full()
local token = own_token(ARGV[2], ARGV[3], ARGV[4])
if not token then return { 1 } end
for i = 7, #ARGV do
  redis.call('SREM', topic_subscribers_key(ARGV[i]), token)
  redis.call('SREM', subscriber_topics_key(token), ARGV[i])
end
if redis.call('SCARD', subscriber_topics_key(token)) == 0 then remove_subscriber(token) end
return { 1 }
