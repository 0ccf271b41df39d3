-- Records when tokens were last used, and removes records of tokens that are gone. A later time
-- that another process has recorded stays.
--
-- ARGV     1 namespace, then tokens, each with a time (ms)
-- Returns  {1}
local used = tokens_used_key()
for i = 2, #ARGV, 2 do
  local token, at = ARGV[i], ARGV[i + 1]
  local noted = tonumber(redis.call('HGET', used, token) or '') or 0
  if tonumber(at) > noted and redis.call('HEXISTS', tokens_key(), token) == 1 then
    redis.call('HSET', used, token, at)
  end
end
for _, token in ipairs(redis.call('HKEYS', used)) do
  if redis.call('HEXISTS', tokens_key(), token) == 0 then redis.call('HDEL', used, token) end
end
return { 1 }
