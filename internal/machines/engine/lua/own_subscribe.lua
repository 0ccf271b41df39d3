-- Subscribes the machines' own client to topics, in addition to its earlier ones. Creates the
-- client if need be.
--
-- ARGV     1 namespace, 2.. see the store's lib/subscriptions.lua, with a callback, topics and a
--          token that nobody has; and then the client's name, and its tokens in other partitions,
--          see own_token
-- Returns  {1}; {0, why not} as the store's subscriber_put
local elsewhere, name = table.remove(ARGV), table.remove(ARGV)
local sent = read_subscription()
sent.token = ensure_token(name, sent.callback, elsewhere, sent.token)
for _, topic in ipairs(redis.call('SMEMBERS', subscriber_topics_key(sent.token))) do
  sent.topics[topic] = true
end
return put_subscription(sent, name)
