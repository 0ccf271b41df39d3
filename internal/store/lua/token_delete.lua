-- Deletes a client's token, and its subscriber with it. Its topics stay the client's: see
-- topic_inherit. With its last token go its idempotency keys.
--
-- ARGV     1 namespace, 2 token
-- Returns  {1}, also when it was gone: its removal may still have to be confirmed
allow_when_full()
local token = ARGV[2]
local name = redis.call('HGET', tokens_key(), token)
local heir = redis.call('HGET', rotations_key(), token)
local orphaned = heir and redis.call('HEXISTS', tokens_key(), heir) == 0
redis.call('HDEL', tokens_key(), token)
remove_subscriber(token)
if orphaned then remove_subscriber(heir) end -- it was the only token left that spoke for that
if not name then return { 1 } end
for _, other in ipairs(redis.call('HVALS', tokens_key())) do
  if other == name then return { 1 } end
end
idempotency_keys(name).remove()
return { 1 }
