-- Deletes a client's token, and its subscriber with it. Its topics go to another token of the same client,
-- if there is one, so that a client can change its token. With its last token go its idempotency keys.
--
-- ARGV     1 namespace, 2 token
-- Returns  1
local token = ARGV[2]
allow_when_full()
local name = redis.call('HGET', tokens_key(), token)
redis.call('HDEL', tokens_key(), token)
remove_subscriber(token)

local heir = nil
local tokens = redis.call('HGETALL', tokens_key())
for i = 1, #tokens, 2 do
  if tokens[i + 1] == name then heir = tokens[i] end
end
if not heir then
  if name then remove_requests(name) end
  return 1
end
for _, topic in ipairs(redis.call('SMEMBERS', topics_key())) do
  if redis.call('HGET', topic_key(topic), 'publisher') == token then
    redis.call('HSET', topic_key(topic), 'publisher', heir)
  end
end
return 1
