-- Registers a token for a client, unless it is, or was a moment ago, another client's.
--
-- ARGV     1 namespace, 2 token, 3 client's name
-- Returns  {1}; {0, 'token taken'} when the token is another client's
local token, name = ARGV[2], ARGV[3]
local holder = redis.call('HGET', tokens_key(), token)
local heir = redis.call('HGET', rotations_key(), token)
if heir and not holder then -- its keys are still being moved
  holder = redis.call('HGET', tokens_key(), heir)
end
if holder and holder ~= name then return { 0, 'token taken' } end
redis.call('HSET', tokens_key(), token, name)
return { 1 }
